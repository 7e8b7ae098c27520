"""POST /v1/rerank, /v1/reranking, /rerank and /reranking."""

import math
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.text import JoinPairs
from llamero import dispatch
from llamero.accounts.scopes import Scope
from llamero.api.async_view import caller_of, json_response
from llamero.api.embedding_jobs import compute_vectors
from llamero.api.model_choice import RERANK
from llamero.api.native.view import NativeView
from llamero.api.questions import ask_pairs
from llamero.api.rerank_request import RerankRequest, RerankSerializer, read_rerank_request
from llamero.api.truncation import Tokens, too_long
from llamero.api.vector_json import read_first_numbers

_UNSCALED = -1


class RerankView(NativeView):
    """Score documents for a query, best first."""

    scope = Scope.EMBEDDINGS
    serializer_class = RerankSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = self.read_body(request)
        self.asked = read_rerank_request(body)
        self.served = self.find_model(request, RERANK, body)
        self.waits_at = self.served.deployment

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Rerank."""
        pairs = await self._join()
        rows = await compute_vectors(
            served=self.served,
            inputs=pairs,
            caller=caller_of(request),
            norm=_UNSCALED,
            num_dimensions=1,
        )
        results = _sort(self.asked, read_first_numbers(rows))
        if self.asked.is_tei:
            return json_response(results)
        num_tokens = sum(map(len, pairs))
        usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
        return json_response(
            {"model": self.served.id, "object": "list", "usage": usage, "results": results}
        )

    async def _join(self) -> tuple[Tokens, ...]:
        """Tokenize each pair; the end of a document is cut off where that was asked for."""
        asked = self.asked
        facts = await dispatch.get_dispatcher().facts(self.served.deployment)
        question = JoinPairs(
            query=asked.query,
            documents=asked.documents,
            max_tokens=asked.truncation.tokens_kept(facts) or 0,
        )
        pairs = await ask_pairs(self.served.deployment, question)
        limit = question.max_tokens or facts.context_length
        for index, pair in enumerate(pairs):
            if len(pair) > limit:
                path = f"{asked.param}[{index}], together with the query,"
                raise too_long(path, asked.param, len(pair), limit)
        return pairs


def _sort(asked: RerankRequest, scores: list[float]) -> list[dict[str, Any]]:
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return [_describe(asked, index, scores[index]) for index in order[: asked.top_n]]


def _describe(asked: RerankRequest, index: int, score: float) -> dict[str, Any]:
    if asked.squashes_scores:
        # Halved, so that no score overflows: the logistic function is a stretched tanh.
        score = 0.5 * (1 + math.tanh(score / 2))
    text = asked.documents[index]
    if asked.is_tei:
        return {"index": index, "score": score} | ({"text": text} if asked.returns_text else {})
    document = {"document": {"text": text}} if asked.returns_text else {}
    return {"index": index, "relevance_score": score} | document
