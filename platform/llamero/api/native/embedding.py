"""POST /embedding and /embeddings."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.jobs import EUCLIDEAN
from llamero.accounts.scopes import Scope
from llamero.api.async_view import caller_of, json_response
from llamero.api.embedding_request import EmbeddingRequest
from llamero.api.fields import AnyValue, StrictInteger, validate
from llamero.api.model_choice import EMBEDDING
from llamero.api.native.view import NativeView
from llamero.api.prompts import read_native_prompts
from llamero.api.truncation import Truncation, TruncationFields
from llamero.api.vector_json import write_tables
from llamero.errors import InvalidValue


class EmbeddingSerializer(TruncationFields):
    """The fields of POST /embedding. ``embd_normalize``: -1 none, 0 16-bit range, else a p-norm."""

    content = AnyValue(required=False)
    input = AnyValue(required=False)
    embd_normalize = StrictInteger(-1, 1024, required=False)


class EmbeddingView(NativeView):
    """Turn texts into vectors, in llama-server's nested form: a row per token if none is pooled."""

    scope = Scope.EMBEDDINGS
    serializer_class = EmbeddingSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = self.read_body(request)
        fields = validate(EmbeddingSerializer, body)
        param = "content" if "content" in fields else "input"
        if param not in fields:
            raise InvalidValue("content", "content is missing.", "missing_required_parameter")
        inputs = read_native_prompts(fields[param], param)
        truncation = Truncation.read(fields)
        self.job = EmbeddingRequest(
            served=self.find_model(request, EMBEDDING, body),
            inputs=inputs,
            param=param,
            caller=caller_of(request),
            truncation=truncation,
            norm=fields.get("embd_normalize", EUCLIDEAN),
        )
        self.waits_at = self.job.served.deployment
        self.job.check()

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Embed."""
        rows, _ = await self.job.compute(await self.job.facts())
        tables = await write_tables(rows)
        return json_response(
            [{"index": index, "embedding": table} for index, table in enumerate(tables)]
        )
