"""Arrays with ``contains``: some of the items, wherever they stand, must fit a schema."""

from collections.abc import Mapping
from typing import Any

from inference.text.json_schema.gbnf import BLANK
from inference.text.json_schema.keywords import read_bounds
from inference.text.json_schema.references import join
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.writing import SchemaWriter

# Numbers of items times numbers of those that fit: one rule for each.
_MAX_RULES = 256


def contained_items(writer: SchemaWriter, schema: Mapping[str, Any], pointer: str) -> str:
    """Give the body of an array; raises Refusal."""
    return _Writer(writer, schema, pointer).write()


def read_prefix(schema: Mapping[str, Any], pointer: str) -> list[Any]:
    """Give the schemas of the first items."""
    prefix = schema.get("prefixItems", [])
    if not isinstance(prefix, list):
        raise Refusal(f"{pointer}/prefixItems", "must be a list")
    return prefix


class _Writer:
    """Counts items, as far as their number or place matters, and those that fit.

    Where there may be only so many that fit, all others must not; else they may, uncounted.
    """

    def __init__(self, writer: SchemaWriter, schema: Mapping[str, Any], pointer: str) -> None:
        self._writer, self._schema, self._pointer = writer, schema, pointer
        self._least, self._most = read_bounds(schema, "minItems", "maxItems", pointer)
        needed, self._limit = read_bounds(schema, "minContains", "maxContains", pointer)
        self._needed = needed if "minContains" in schema else 1
        self._prefix = read_prefix(schema, pointer)
        self._last = self._most or max(self._least, len(self._prefix), 1)
        self._last_fit = self._needed if self._limit is None else self._limit
        if (self._last + 1) * (self._last_fit + 1) > _MAX_RULES:
            raise Refusal(f"{pointer}/contains", "is supported for short arrays only")
        self._rules: dict[tuple[int, int], str | None] = {}
        self._items: dict[tuple[int, bool], str | None] = {}

    def write(self) -> str:
        """Give the body; raises Unsatisfiable where there is none."""
        body = self._rule(0, 0)
        if body is None:
            raise Unsatisfiable(f"{self._pointer}/contains", "asks for items that cannot be")
        return body

    def _rule(self, num_items: int, num_fit: int) -> str | None:
        """Give what may follow so many items; None where nothing can."""
        key = (num_items, num_fit)
        if key not in self._rules:
            grammar = self._writer.grammar
            name = self._rules[key] = grammar.reserve()
            options = self._options(num_items, num_fit, name)
            if not options:
                self._rules[key] = None
            grammar.fill(name, " | ".join(options) or '""')
        return self._rules[key]

    def _options(self, num_items: int, num_fit: int, own_name: str) -> list[str]:
        options = ['""'] if num_items >= self._least and num_fit >= self._needed else []
        if num_items == self._most:
            return options
        comma = f'"," {BLANK} ' if num_items else ""
        for fits in (True, False):
            after = num_fit + fits
            if after > self._last_fit:
                if self._limit is not None:
                    continue
                after = num_fit
            item = self._item(num_items, fits=fits)
            following = min(num_items + 1, self._last)
            is_loop = (following, after) == (num_items, num_fit)
            if item is None or (is_loop and not options):
                # A loop that never ends is no way to go on.
                continue
            tail = own_name if is_loop else self._rule(following, after)
            if tail is not None:
                options.append(f"{comma}{item} {tail}")
        return list(dict.fromkeys(options))

    def _item(self, index: int, *, fits: bool) -> str | None:
        """Give the item of a place, of those that fit or (if there is a limit) of those that do
        not; None where there is none."""
        index = min(index, len(self._prefix))
        if (index, fits) not in self._items:
            self._items[index, fits] = self._write_item(index, fits)
        return self._items[index, fits]

    def _write_item(self, index: int, fits: bool) -> str | None:
        place = join(self._pointer, "items")
        schema = self._schema.get("items", True)
        if index < len(self._prefix):
            place, schema = join(self._pointer, "prefixItems", index), self._prefix[index]
        contained = self._schema["contains"]
        if fits:
            schema = {"allOf": [schema, contained]}
        elif self._limit is not None:
            schema = {"allOf": [schema, {"not": contained}]}
        try:
            return self._writer.convert(schema, place)
        except Unsatisfiable:
            return None
