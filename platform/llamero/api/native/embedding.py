"""POST /embedding and /embeddings."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.api.async_view import caller_of, json_response
from llamero.api.embedding_jobs import embed, read_floats
from llamero.api.fields import AnyValue, RequestSerializer, StrictInteger, validate
from llamero.api.model_choice import EMBEDDING
from llamero.api.native.view import NativeView
from llamero.api.prompts import read_native_prompts
from llamero.errors import InvalidValue, NotSupported

_NONE, _EUCLIDEAN = -1, 2


class EmbeddingSerializer(RequestSerializer):
    """The fields of POST /embedding."""

    content = AnyValue(required=False)
    input = AnyValue(required=False)
    embd_normalize = StrictInteger(-1, 1024, required=False)


class EmbeddingView(NativeView):
    """Turn texts into vectors, in llama-server's nested form."""

    serializer_class = EmbeddingSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = self.read_body(request)
        fields = validate(EmbeddingSerializer, body)
        self.param = "content" if "content" in fields else "input"
        if self.param not in fields:
            raise InvalidValue("content", "content is missing.", "missing_required_parameter")
        self.norm = fields.get("embd_normalize", _EUCLIDEAN)
        if self.norm not in (_NONE, _EUCLIDEAN):
            raise NotSupported("embd_normalize", "embd_normalize must be -1 or 2.")
        self.inputs = read_native_prompts(fields[self.param], self.param)
        self.served = self.find_model(request, EMBEDDING, body)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Embed."""
        found = await embed(
            served=self.served,
            inputs=self.inputs,
            param=self.param,
            owner=caller_of(request).owner,
            normalize=self.norm == _EUCLIDEAN,
        )
        return json_response(
            [
                {"index": index, "embedding": [read_floats(vector)]}
                for index, vector in enumerate(found.vectors)
            ]
        )
