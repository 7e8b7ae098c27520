// Points on a plane as a small SVG, each with its number.

import { placeLabels } from "./labels.js";

const WIDTH = 640;
const HEIGHT = 400;
const MARGIN = 40;

function makeShape(tag, attributes, text = "") {
  const shape = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
  if (text) shape.textContent = text;
  return shape;
}

// Both directions have the same scale, so that distances are true.
export function drawPlot(points, labels) {
  const svg = makeShape("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  svg.setAttribute("aria-label", "Map of the texts: those of like meaning lie close together.");
  const largest = Math.max(1e-9, ...points.map(([x, y]) => Math.max(Math.abs(x) / WIDTH, Math.abs(y) / HEIGHT)));
  const scale = Math.min((WIDTH / 2 - MARGIN) / WIDTH, (HEIGHT / 2 - MARGIN) / HEIGHT) / largest;
  svg.append(
    makeShape("line", { x1: 0, y1: HEIGHT / 2, x2: WIDTH, y2: HEIGHT / 2 }),
    makeShape("line", { x1: WIDTH / 2, y1: 0, x2: WIDTH / 2, y2: HEIGHT }),
  );
  const places = points.map(([x, y]) => [WIDTH / 2 + x * scale, HEIGHT / 2 - y * scale]);
  const numbers = places.map((_, index) => String(index + 1));
  const spots = placeLabels(places, numbers, { width: WIDTH, height: HEIGHT });
  places.forEach(([left, top], index) => {
    const { x, y, isFar } = spots[index];
    const group = makeShape("g", {});
    group.append(makeShape("title", {}, labels[index]));
    if (isFar) group.append(makeShape("line", { x1: left, y1: top, x2: x, y2: y, class: "leader" }));
    group.append(
      makeShape("circle", { cx: left, cy: top, r: 5 }),
      makeShape("text", { x, y, "text-anchor": "middle", "dominant-baseline": "central" }, numbers[index]),
    );
    svg.append(group);
  });
  return svg;
}
