"""From a JSON Schema to a grammar (GBNF) whose texts all are JSON that the schema allows."""

from inference.text.json_schema.convert import schema_to_grammar

__all__ = ["schema_to_grammar"]
