// Where the labels of points go: beside them, and none over another.

const HEIGHT = 14;
const DIGIT_WIDTH = 8;
const POINT_RADIUS = 6;
const DISTANCES = [13, 22, 32, 44];
const DIRECTIONS = [0, 4, 6, 2, 7, 1, 5, 3].map((eighth) => (eighth * Math.PI) / 4);

// Gives the middle of each label, {x, y, isFar}: one that is far needs a line to its point. Where
// there is no room left, a label is over others, in the nearest place.
export function placeLabels(points, texts, { width, height }) {
  const taken = points.map(([x, y]) => ({ x, y, width: 2 * POINT_RADIUS, height: 2 * POINT_RADIUS }));
  return points.map((point, index) => {
    const box = { width: DIGIT_WIDTH * texts[index].length, height: HEIGHT };
    const places = candidates(point).map((place) => ({ ...place, ...box }));
    const isFree = (place) => isWithin(place, width, height) && !taken.some((other) => overlap(place, other));
    const place = places.find(isFree) ?? places[0];
    taken.push(place);
    return place;
  });
}

function candidates([x, y]) {
  return DISTANCES.flatMap((distance) =>
    DIRECTIONS.map((angle) => ({
      x: x + distance * Math.cos(angle),
      y: y + distance * Math.sin(angle),
      isFar: distance > DISTANCES[0],
    })),
  );
}

function overlap(one, other) {
  return Math.abs(one.x - other.x) < (one.width + other.width) / 2 && Math.abs(one.y - other.y) < (one.height + other.height) / 2;
}

function isWithin(place, width, height) {
  const isIn = (middle, size, end) => middle - size / 2 >= 0 && middle + size / 2 <= end;
  return isIn(place.x, place.width, width) && isIn(place.y, place.height, height);
}
