"""Models as Anthropic's clients list them: page by page."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from llamero.errors import InvalidValue
from models_registry.selectors import ServedModel

DEFAULT_LIMIT = 20
MAX_LIMIT = 1000


def describe_model(served: ServedModel) -> dict[str, Any]:
    """Describe one model."""
    created = datetime.fromtimestamp(served.created, UTC)
    return {
        "type": "model",
        "id": served.id,
        "display_name": served.title or served.id,
        "created_at": created.isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": served.profile.context_length,
        "max_tokens": served.profile.context_length,
    }


def list_page(models: Sequence[ServedModel], query: Mapping[str, str]) -> dict[str, Any]:
    """Give the page that ``limit`` and ``after_id`` or ``before_id`` ask for."""
    limit = _read_limit(query.get("limit"))
    ids = [served.id for served in models]
    if "after_id" in query:
        start = _find(ids, query["after_id"], "after_id") + 1
        page, has_more = models[start : start + limit], start + limit < len(models)
    elif "before_id" in query:
        end = _find(ids, query["before_id"], "before_id")
        page, has_more = models[max(0, end - limit) : end], end > limit
    else:
        page, has_more = models[:limit], limit < len(models)
    return {
        "data": [describe_model(served) for served in page],
        "has_more": has_more,
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
    }


def _read_limit(value: str | None) -> int:
    if value is None:
        return DEFAULT_LIMIT
    if not (value.isascii() and value.isdigit() and len(value) <= 4) or not (
        1 <= int(value) <= MAX_LIMIT
    ):
        raise InvalidValue("limit", f"limit must be between 1 and {MAX_LIMIT}.")
    return int(value)


def _find(ids: Sequence[str], wanted: str, param: str) -> int:
    if wanted not in ids:
        raise InvalidValue(param, f"{param} must be the id of a listed model.")
    return ids.index(wanted)
