"""What the writers of objects and arrays need of the one that walks the schema around them."""

from typing import Any, Protocol

from inference.text.json_schema.gbnf import Grammar


class SchemaWriter(Protocol):
    """Writes parts of one schema into one grammar."""

    @property
    def grammar(self) -> Grammar:
        """The grammar that is written."""
        ...

    def convert(self, schema: Any, pointer: str) -> str:
        """Give the item that matches what a schema allows; raises Refusal."""
        ...

    def expand(self, schema: Any, pointer: str) -> list[dict[str, Any]]:
        """Give the alternatives of a schema, each without combining words at its top."""
        ...

    def texts(self, schema: Any, pointer: str) -> list[str] | None:
        """Give all texts that are written for a schema; None where it does not list its values."""
        ...
