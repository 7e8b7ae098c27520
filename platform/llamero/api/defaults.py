"""What a request has where it says nothing: the defaults of the deployment that answers it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from llamero.api.lengths import LENGTH_NAMES

RequestDefaults = Mapping[str, Any]
"""Fields by llama-server's names, as validated ones are; those that are not set are not there."""
NO_DEFAULTS: RequestDefaults = MappingProxyType({})


def with_defaults(
    fields: dict[str, Any],
    defaults: RequestDefaults,
    length_names: tuple[str, ...] = LENGTH_NAMES,
) -> dict[str, Any]:
    """Add what validated fields leave out; a null was left out by their validation.

    ``length_names`` are the API's names for the longest answer; a default goes by the first. It
    gives way to ``min_tokens``: what a client asks for is no error because of what it does not see.
    """
    added = dict(defaults)
    length = added.pop("n_predict", None)
    if length is not None and not any(name in fields for name in length_names):
        added[length_names[0]] = max(length, fields.get("min_tokens", 0)) if length > 0 else length
    if "sampler_seq" in fields:
        added.pop("samplers", None)
    return added | fields
