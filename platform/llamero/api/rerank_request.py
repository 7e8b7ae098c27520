"""What a rerank request asks, in Jina's words or TEI's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llamero.api.embedding_request import check_count
from llamero.api.fields import AnyValue, StrictBoolean, StrictInteger, StrictString, validate
from llamero.api.truncation import Truncation, TruncationFields
from llamero.errors import InvalidValue, NotSupported


class RerankSerializer(TruncationFields):
    """Jina's fields (``documents``, ``top_n``, ``return_documents``) and TEI's (``texts``, …)."""

    query = StrictString()
    documents = AnyValue(required=False)
    texts = AnyValue(required=False)
    top_n = StrictInteger(1, required=False)
    return_documents = StrictBoolean(required=False)
    return_text = StrictBoolean(required=False)
    raw_scores = StrictBoolean(required=False)


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """A query and the texts to score. ``param`` is the field they came in."""

    query: str
    documents: tuple[str, ...]
    param: str
    truncation: Truncation
    top_n: int
    returns_text: bool
    squashes_scores: bool

    @property
    def is_tei(self) -> bool:
        """Whether the answer is a bare list, as TEI gives it."""
        return self.param == "texts"


def read_rerank_request(body: Mapping[str, Any]) -> RerankRequest:
    """Validate a body; raises ValidationError or LlameroError."""
    fields = validate(RerankSerializer, body)
    if ("documents" in fields) == ("texts" in fields):
        code = "invalid_value" if "texts" in fields else "missing_required_parameter"
        raise InvalidValue("documents", "Give documents, or texts (TEI's name), not both.", code)
    param = "texts" if "texts" in fields else "documents"
    documents = _read_documents(fields[param], param)
    truncation = Truncation.read(fields)
    if truncation.keeps_end:
        raise NotSupported(
            "truncation_direction", "Documents are cut at their end only: Left is not supported."
        )
    returns = "return_text" if param == "texts" else "return_documents"
    return RerankRequest(
        query=fields["query"],
        documents=documents,
        param=param,
        truncation=truncation,
        top_n=fields.get("top_n", len(documents)),
        returns_text=fields.get(returns, False),
        squashes_scores=param == "texts" and fields.get("raw_scores") is False,
    )


def _read_documents(value: Any, param: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidValue(param, f"{param} must be a list of texts, and not empty.")
    check_count(len(value), param)
    return tuple(_read_document(item, param, f"{param}[{i}]") for i, item in enumerate(value))


def _read_document(item: Any, param: str, path: str) -> str:
    text = item.get("text") if isinstance(item, dict) else item
    if not isinstance(text, str):
        raise InvalidValue(param, f"{path} must be a string, or an object with a text.")
    return text
