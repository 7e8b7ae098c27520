"""Serializer fields that take JSON types at their word: true is no 1, and "2" is no 2."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers

from llamero.errors import NotSupported

# Fields by which other servers let a client name templates, files or addresses, or reach into
# what runs. Here they would do nothing; a client that sends one must not believe otherwise.
REFUSED_FIELDS = (
    "chat_template",
    "chat_template_file",
    "api_base",
    "base_url",
    "endpoint_url",
    "webhook_url",
    "callback_url",
    "image_url",
    "user_config",
    "litellm_params",
    "model_path",
    "model_file",
    "lora_path",
    "lora_request",
    "lora_adapters",
    "grammar_file",
    "json_schema_file",
    "slot_save_path",
    "logits_processors",
    "kv_transfer_params",
    "prompt_embeds",
    "mm_processor_kwargs",
)


class StrictBoolean(serializers.Field[bool, Any, Any, Any]):
    """Exactly true or false."""

    default_error_messages: ClassVar[dict[str, Any]] = {"invalid": "must be true or false"}

    def to_internal_value(self, data: Any) -> bool:
        """Take a boolean."""
        if type(data) is not bool:
            self.fail("invalid")
        return bool(data)


class StrictInteger(serializers.Field[int, Any, Any, Any]):
    """A JSON integer within bounds."""

    default_error_messages: ClassVar[dict[str, Any]] = {
        "invalid": "must be an integer",
        "range": "must be {bounds}",
    }

    def __init__(self, min_value: int, max_value: int = 2**31 - 1, **kwargs: Any) -> None:
        self.min_value, self.max_value = min_value, max_value
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> int:
        """Take an integer within bounds; 5.0 is one, as JSON Schema has it."""
        if type(data) is float and data.is_integer():
            data = int(data)
        if type(data) is not int:
            self.fail("invalid")
        if not self.min_value <= data <= self.max_value:
            self.fail("range", bounds=_bounds(self.min_value, self.max_value))
        return int(data)


class StrictFloat(serializers.Field[float, Any, Any, Any]):
    """A finite JSON number within bounds. ``is_open`` leaves the lower bound itself out."""

    default_error_messages: ClassVar[dict[str, Any]] = {
        "invalid": "must be a number",
        "range": "must be {bounds}",
    }

    def __init__(
        self, min_value: float, max_value: float, *, is_open: bool = False, **kwargs: Any
    ) -> None:
        self.min_value, self.max_value, self.is_open = min_value, max_value, is_open
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> float:
        """Take a number within bounds."""
        if type(data) not in (int, float):
            self.fail("invalid")
        is_low = data <= self.min_value if self.is_open else data < self.min_value
        if is_low or data > self.max_value or not math.isfinite(data):
            self.fail("range", bounds=_bounds(self.min_value, self.max_value))
        return float(data)


class StrictString(serializers.Field[str, Any, Any, Any]):
    """A JSON string, perhaps one of a few.

    One of limited length is a name: it may be stored, and a database takes no null characters.
    """

    default_error_messages: ClassVar[dict[str, Any]] = {
        "invalid": "must be a string",
        "long": "must have at most {max_length} characters",
        "null": "must have no null characters",
        "choice": "must be one of {choices}",
    }

    def __init__(
        self, max_length: int | None = None, choices: tuple[str, ...] = (), **kwargs: Any
    ) -> None:
        self.max_length, self.choices = max_length, choices
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        """Take a string."""
        if not isinstance(data, str):
            self.fail("invalid")
        if self.max_length is not None and len(data) > self.max_length:
            self.fail("long", max_length=self.max_length)
        if self.max_length is not None and "\0" in data:
            self.fail("null")
        if self.choices and data not in self.choices:
            self.fail("choice", choices=", ".join(self.choices))
        return str(data)


class AnyValue(serializers.Field[Any, Any, Any, Any]):
    """Whatever JSON holds; checked by the code that knows what it means."""

    def to_internal_value(self, data: Any) -> Any:
        """Take it as it is."""
        return data


class StopStrings(serializers.Field[tuple[str, ...], Any, Any, Any]):
    """One stop string or a list of them; none empty."""

    default_error_messages: ClassVar[dict[str, Any]] = {
        "invalid": "must be a string or a list of strings",
        "empty": "must not hold an empty string",
        "many": "must hold at most {max_items} strings",
        "long": "must hold strings of at most {max_length} characters",
    }
    max_length = 1024

    def __init__(self, max_items: int, **kwargs: Any) -> None:
        self.max_items = max_items
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        """Take the strings."""
        words = [data] if isinstance(data, str) else data
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            self.fail("invalid")
        if len(words) > self.max_items:
            self.fail("many", max_items=self.max_items)
        if not all(words):
            self.fail("empty")
        if any(len(word) > self.max_length for word in words):
            self.fail("long", max_length=self.max_length)
        return tuple(words)


class RequestSerializer(serializers.Serializer[Any]):
    """Validates a request body. A null field is an absent one; unknown fields are ignored.

    Those of ``refused`` are an error unless they hold nothing.
    """

    refused: ClassVar[tuple[str, ...]] = REFUSED_FIELDS

    def to_internal_value(self, data: Any) -> Any:
        """Leave nulls out, then validate field by field."""
        if isinstance(data, Mapping):
            for name in self.refused:
                if data.get(name):
                    raise NotSupported(name, f"{name} may not be set by a request.")
            data = {name: value for name, value in data.items() if value is not None}
        return super().to_internal_value(data)


_serializers: dict[type[RequestSerializer], RequestSerializer] = {}


def validate(serializer: type[RequestSerializer], body: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a body; raises ValidationError.

    Validation keeps no state in the serializer, so one of each kind serves every request: making
    one copies all its fields, a millisecond for fifty of them.
    """
    instance = _serializers.get(serializer)
    if instance is None:
        instance = _serializers.setdefault(serializer, serializer())
    return dict(instance.run_validation(body))


def _bounds(low: float, high: float) -> str:
    least, most = (str(end) if isinstance(end, int) else f"{end:g}" for end in (low, high))
    return f"between {least} and {most}"
