"""Arrays: what may stand between their brackets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference.text.grammar.writer import one_of
from inference.text.json_schema.contained import contained_items, read_prefix
from inference.text.json_schema.distinct import distinct_items, without_equals
from inference.text.json_schema.gbnf import BLANK, COMMA, Grammar
from inference.text.json_schema.keywords import read_bounds, read_flag
from inference.text.json_schema.references import join
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.writing import SchemaWriter


@dataclass(frozen=True, slots=True)
class _Run:
    """Items of one kind, as many as given; no ``most`` is without end."""

    item: str
    least: int
    most: int | None

    def after(self, grammar: Grammar) -> str:
        """Give what may follow something else."""
        if self.most == 0:
            return '""'
        return grammar.repeat(grammar.define(f"{COMMA} {self.item}"), self.least, self.most)


def array_item(writer: SchemaWriter, schema: Mapping[str, Any], pointer: str) -> str:
    """Give an item that matches the arrays a schema allows."""
    _, most = read_bounds(schema, "minItems", "maxItems", pointer)
    if read_flag(schema, "uniqueItems", pointer) and (most is None or most > 1):
        body = _distinct(writer, schema, pointer)
    elif "contains" in schema:
        body = contained_items(writer, schema, pointer)
    else:
        body = _write(writer.grammar, _runs(writer, schema, pointer))
    return writer.grammar.define(f'"[" {BLANK} {body} "]"')


def _runs(writer: SchemaWriter, schema: Mapping[str, Any], pointer: str) -> list[_Run]:
    """Give the items of ``prefixItems``, then those of ``items``."""
    least, most = read_bounds(schema, "minItems", "maxItems", pointer)
    prefix = read_prefix(schema, pointer)[:most]
    parts = [writer.convert(part, join(pointer, "prefixItems", i)) for i, part in enumerate(prefix)]
    runs = [_Run(part, 1, 1) for part in parts]
    num_more = max(0, least - len(parts))
    room = None if most is None else most - len(parts)
    if room != 0 and ("items" in schema or not parts or num_more):
        try:
            item = writer.convert(schema.get("items", True), join(pointer, "items"))
            runs.append(_Run(writer.grammar.define(item), num_more, room))
        except Unsatisfiable:
            if num_more:
                raise
    return runs


def _write(grammar: Grammar, runs: list[_Run]) -> str:
    """Write runs, of which only the last may be empty."""
    if not runs:
        return '""'
    first, *others = runs
    most = None if first.most is None else first.most - 1
    rest = [_Run(first.item, max(first.least - 1, 0), most), *others]
    body = " ".join([first.item, *(run.after(grammar) for run in rest)])
    return body if first.least else one_of([body, '""'])


def _distinct(writer: SchemaWriter, schema: Mapping[str, Any], pointer: str) -> str:
    """Give the body of an array without equal items: of listed values only."""
    place = f"{pointer}/uniqueItems"
    if "contains" in schema or "prefixItems" in schema:
        raise Refusal(place, "is not supported beside contains or prefixItems")
    least, most = read_bounds(schema, "minItems", "maxItems", pointer)
    items, at = schema.get("items", True), join(pointer, "items")
    texts = writer.texts(items, at) if items is not True else None
    if texts is None:
        problem = "is supported for items of an enum, booleans and small ranges of integers only"
        raise Refusal(place, f"{problem}: no grammar can tell whether other items are equal")
    return distinct_items(writer.grammar, without_equals(texts), least, most, pointer)
