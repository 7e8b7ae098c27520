// The embeddings page: how alike texts are, as a table and as a map.

import { writeEmbeddings } from "./code.js";
import { make } from "./elements.js";
import { cosine, projectToPlane } from "./pca.js";
import { drawPlot } from "./plot.js";
import { VectorPage } from "./vector_page.js";

function makeTable(texts, vectors) {
  const head = make("tr", "", make("td"), ...texts.map((_, index) => makeHeading("col", String(index + 1))));
  const rows = texts.map((text, row) => {
    const cells = vectors.map((vector) => makeCell(cosine(vectors[row], vector)));
    const heading = makeHeading("row", `${row + 1}. ${text}`);
    heading.title = text;
    return make("tr", "", heading, ...cells);
  });
  return make("table", "similarities", make("thead", "", head), make("tbody", "", ...rows));
}

function makeHeading(scope, text) {
  const heading = make("th", "", text);
  heading.scope = scope;
  return heading;
}

function makeCell(similarity) {
  const cell = make("td", "", similarity.toFixed(2));
  cell.style.setProperty("--share", `${Math.round(Math.max(0, similarity) ** 2 * 45)}%`);
  return cell;
}

function show({ input: texts }, { data, usage }, results) {
  const vectors = data.map(({ embedding }) => embedding);
  const scroll = make("div", "table-scroll", makeTable(texts, vectors));
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Similarities");
  const facts = `Vectors: ${vectors.length}, of ${vectors[0].length} numbers · tokens: ${usage.prompt_tokens}`;
  results.replaceChildren(
    make("section", "", make("h2", "", "Cosine similarity"), scroll, make("p", "vector-facts", facts)),
    make("section", "", make("h2", "", "Map"), drawPlot(projectToPlane(vectors), texts), make("p", "vector-facts", "The plane in which the vectors differ most (principal components).")),
  );
}

new VectorPage({
  route: "compute/embeddings",
  fits: ({ embeds }) => embeds,
  fewest: 2,
  readBody: (input) => ({ input, encoding_format: "float" }),
  show,
  writeCode: writeEmbeddings,
});
