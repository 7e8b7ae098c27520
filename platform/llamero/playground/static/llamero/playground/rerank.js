// The rerank page: documents in the order in which they answer a query.

import { writeRerank } from "./code.js";
import { make } from "./elements.js";
import { VectorPage } from "./vector_page.js";

function show({ documents }, { results: ranked, usage }, results) {
  const scores = ranked.map(({ relevance_score: score }) => score);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const items = ranked.map(({ index, relevance_score: score }, place) => {
    const meter = make("meter");
    meter.value = high > low ? (score - low) / (high - low) : 1;
    meter.setAttribute("aria-label", "Relevance, the best being full");
    const head = make("div", "rank-head", `${place + 1}.`, meter, score.toFixed(3), `line ${index + 1}`);
    return make("li", "", head, documents[index]);
  });
  results.replaceChildren(
    make("section", "", make("h2", "", "Best first"), make("ol", "ranking", ...items)),
    make("p", "vector-facts", `Tokens: ${usage.prompt_tokens}`),
  );
}

new VectorPage({
  route: "compute/rerank",
  fits: ({ kind }) => kind === "rerank",
  fewest: 1,
  readBody: (documents) => ({ query: document.getElementById("query").value, documents }),
  show,
  writeCode: writeRerank,
});
