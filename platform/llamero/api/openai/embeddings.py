"""POST /v1/embeddings."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.embedding_jobs import embed, read_floats, shorten
from llamero.api.fields import AnyValue, RequestSerializer, StrictInteger, StrictString, validate
from llamero.api.json_body import read_json_object
from llamero.api.model_choice import EMBEDDING, choose_model, first_named
from llamero.api.prompts import read_prompts
from llamero.errors import InvalidValue
from models_registry.selectors import ServedModel


class EmbeddingsSerializer(RequestSerializer):
    """The fields of POST /v1/embeddings."""

    input = AnyValue()
    encoding_format = StrictString(choices=("float", "base64"), required=False)
    dimensions = StrictInteger(1, required=False)
    user = StrictString(required=False)


class EmbeddingsView(AsyncAPIView):
    """Turn texts into vectors."""

    serializer_class = EmbeddingsSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = read_json_object(request._request)
        self.fields = validate(EmbeddingsSerializer, body)
        self.inputs = read_prompts(self.fields["input"], "input")
        model = first_named(body.get("model"), self.kwargs.get("model"))
        self.served = choose_model(model, caller_of(request), EMBEDDING)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Embed."""
        found = await embed(
            served=self.served, inputs=self.inputs, param="input", owner=caller_of(request).owner
        )
        vectors = _resize(found.vectors, self.fields.get("dimensions"), self.served)
        is_base64 = self.fields.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": vector if is_base64 else read_floats(vector),
            }
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens}
        return json_response(
            {"object": "list", "data": data, "model": self.served.id, "usage": usage}
        )


def _resize(
    vectors: tuple[str, ...], dimensions: int | None, served: ServedModel
) -> tuple[str, ...]:
    """Shorten vectors where the model was trained for that (Matryoshka); refuse elsewhere."""
    num_full = len(read_floats(vectors[0]))
    if dimensions is None or dimensions == num_full:
        return vectors
    if dimensions > num_full:
        raise InvalidValue("dimensions", f"{served.id} has {num_full} dimensions.")
    if not served.facts.get("is_matryoshka"):
        raise InvalidValue("dimensions", f"{served.id} gives vectors of {num_full} numbers only.")
    return tuple(shorten(vector, dimensions) for vector in vectors)
