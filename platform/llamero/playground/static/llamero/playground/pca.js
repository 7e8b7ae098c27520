// Principal components: the plane in which vectors differ most.

const STEPS = 200;

function dot(left, right) {
  let sum = 0;
  for (let index = 0; index < left.length; index += 1) sum += left[index] * right[index];
  return sum;
}

export function cosine(left, right) {
  const lengths = Math.sqrt(dot(left, left) * dot(right, right));
  return lengths ? dot(left, right) / lengths : 0;
}

// Gives each vector's place in the plane, as [x, y]. There are fewer vectors than dimensions, so
// the small matrix of their products is taken apart, by power iteration.
export function projectToPlane(vectors) {
  const count = vectors.length;
  const mean = vectors[0].map((_, index) => vectors.reduce((sum, vector) => sum + vector[index], 0) / count);
  const centred = vectors.map((vector) => vector.map((value, index) => value - mean[index]));
  const products = centred.map((left) => centred.map((right) => dot(left, right)));
  const axes = [0, 1].map((number) => takeAxis(products, number));
  return vectors.map((_, index) => axes.map((axis) => axis[index]));
}

// Gives the coordinates along the strongest axis that is left, and takes it out of the matrix.
function takeAxis(products, number) {
  const count = products.length;
  // Any start will do that is not square to the axis; a fixed one gives the same plot each time.
  let axis = products.map((_, index) => Math.sin(index + 1 + number));
  for (let step = 0; step < STEPS; step += 1) {
    const next = products.map((row) => dot(row, axis));
    const length = Math.sqrt(dot(next, next));
    if (length < 1e-12) return new Array(count).fill(0);
    axis = next.map((value) => value / length);
  }
  const strength = dot(axis, products.map((row) => dot(row, axis)));
  products.forEach((row, i) => row.forEach((_, j) => (row[j] -= strength * axis[i] * axis[j])));
  return axis.map((value) => value * Math.sqrt(Math.max(0, strength)));
}
