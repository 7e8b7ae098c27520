"""POST /tokenize and /detokenize."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.text import Detokenize, Tokenize
from llamero import dispatch
from llamero.api.async_view import json_response
from llamero.api.fields import AnyValue, RequestSerializer, StrictBoolean, validate
from llamero.api.model_choice import ANY_KIND
from llamero.api.native.view import NativeView
from llamero.api.prompts import (
    PromptText,
    check_vocabulary,
    read_ids,
    read_native_prompt,
    tokenize_parts,
)
from llamero.api.questions import ask_text, ask_tokens
from llamero.errors import InvalidValue


class TokenizeSerializer(RequestSerializer):
    """The fields of POST /tokenize."""

    content = AnyValue(required=False)
    add_special = StrictBoolean(required=False)
    parse_special = StrictBoolean(required=False)
    with_pieces = StrictBoolean(required=False)


class DetokenizeSerializer(RequestSerializer):
    """The fields of POST /detokenize."""

    tokens = AnyValue(required=False)


class TokenizeView(NativeView):
    """Cut text into tokens. Special tokens are not added, but parsed, unless asked otherwise."""

    serializer_class = TokenizeSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = self.read_body(request)
        fields = validate(TokenizeSerializer, body)
        self.content = _read_content(fields.get("content", ""))
        self.switches = {
            "add_special": fields.get("add_special", False),
            "parse_special": fields.get("parse_special", True),
        }
        self.with_pieces = fields.get("with_pieces", False)
        self.served = self.find_model(request, ANY_KIND, body)
        if self.with_pieces and not self.content.is_text:
            raise InvalidValue("with_pieces", "with_pieces is only possible with a text.")

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Tokenize."""
        deployment = self.served.deployment
        if not self.content.is_text:
            found = await tokenize_parts(deployment, [self.content], "content", **self.switches)
            return json_response({"tokens": found[0]})
        text = str(self.content.parts[0])
        question = Tokenize(texts=(text,), with_pieces=self.with_pieces, **self.switches)
        answer = await ask_tokens(deployment, question, "content")
        tokens = answer.tokens[0]
        if not self.with_pieces:
            return json_response({"tokens": tokens})
        pieces = zip(tokens, answer.pieces[0], strict=True)
        return json_response(
            {"tokens": [{"id": token, "piece": _piece(latin1)} for token, latin1 in pieces]}
        )


class DetokenizeView(NativeView):
    """Put tokens together to text."""

    serializer_class = DetokenizeSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body and find the model."""
        body = self.read_body(request)
        value = validate(DetokenizeSerializer, body).get("tokens", [])
        self.tokens = () if value == [] else read_ids(value, "tokens", "tokens")
        self.served = self.find_model(request, ANY_KIND, body)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Detokenize."""
        deployment = self.served.deployment
        facts = await dispatch.get_dispatcher().facts(deployment)
        check_vocabulary([PromptText((self.tokens,), "tokens")], "tokens", facts)
        answer = await ask_text(deployment, Detokenize(tokens=self.tokens))
        return json_response({"content": answer.text})


def _read_content(value: Any) -> PromptText:
    """Read what to cut: a text, or a list of texts and token ids."""
    if value == []:
        value = ""
    if not isinstance(value, str | list):
        raise InvalidValue("content", "content must be a string, or a list of texts and token ids.")
    return read_native_prompt(value, "content", "content")


def _piece(latin1: str) -> str | list[int]:
    """Give a token's text, or its bytes where they are no text."""
    raw = latin1.encode("latin-1")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return list(raw)
