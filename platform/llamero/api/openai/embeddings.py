"""POST /v1/embeddings."""

from typing import Any

import msgspec
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.replicas import ModelFacts
from llamero.accounts.scopes import Scope
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.embedding_jobs import VectorRows
from llamero.api.embedding_request import EmbeddingRequest
from llamero.api.fields import AnyValue, StrictInteger, StrictString, validate
from llamero.api.json_body import read_json_object
from llamero.api.model_choice import EMBEDDING, named_model
from llamero.api.prompts import read_native_prompts
from llamero.api.truncation import Truncation, TruncationFields
from llamero.api.vector_json import write_vectors
from llamero.errors import InvalidValue
from models_registry.selectors import ServedModel


class EmbeddingsSerializer(TruncationFields):
    """The fields of POST /v1/embeddings."""

    input = AnyValue()
    encoding_format = StrictString(choices=("float", "base64"), required=False)
    dimensions = StrictInteger(1, required=False)
    user = StrictString(required=False)


class EmbeddingsView(AsyncAPIView):
    """Turn texts into vectors."""

    scope = Scope.EMBEDDINGS
    serializer_class = EmbeddingsSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = read_json_object(request._request)
        self.fields = validate(EmbeddingsSerializer, body)
        inputs = read_native_prompts(self.fields["input"], "input")
        truncation = Truncation.read(self.fields)
        model = named_model(self.kwargs, body.get("model"))
        self.job = EmbeddingRequest(
            served=self.choose_model(model, EMBEDDING),
            inputs=inputs,
            param="input",
            caller=caller_of(request),
            truncation=truncation,
            num_dimensions=self.fields.get("dimensions", 0),
        )
        self.waits_at = self.job.served.deployment
        self.job.check()

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Embed."""
        served = self.job.served
        facts = await self.job.facts()
        if facts.pooling == "none":
            raise InvalidValue("model", f"{served.id} gives a vector per token: use /embedding.")
        _check_dimensions(self.job.num_dimensions, served, facts)
        rows, num_tokens = await self.job.compute(facts)
        vectors = await _describe(rows, self.fields.get("encoding_format"))
        usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
        data = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ]
        return json_response({"object": "list", "data": data, "model": served.id, "usage": usage})


async def _describe(rows: VectorRows, encoding: str | None) -> list[str] | list[msgspec.Raw]:
    if encoding == "base64":
        return [texts[0] for texts in rows.texts]
    return await write_vectors(rows)


def _check_dimensions(dimensions: int, served: ServedModel, facts: ModelFacts) -> None:
    """Refuse to shorten vectors unless the model was trained for that (Matryoshka)."""
    full = facts.num_dimensions
    least = served.profile.min_dimensions or full
    if dimensions and not least <= dimensions <= full:
        some = f"{full}" if least == full else f"{least} to {full}"
        raise InvalidValue("dimensions", f"{served.id} gives vectors of {some} numbers.")
