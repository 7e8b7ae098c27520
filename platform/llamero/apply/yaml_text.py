"""Read YAML as version 1.2 means it, of plain values alone; what cannot be read has its line."""

import re
from typing import Any

import yaml

from llamero.apply.mistakes import ApplyError

MAX_DEPTH = 40
_CORE = "tag:yaml.org,2002:"
# In YAML 1.1, which the library reads by itself, off is no text, 1:30 is 90, and 010 is 8.
_PLAIN = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?(?:0|[1-9][0-9]*)",
    "float": r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    "merge": r"<<",
}


def read_yaml(text: bytes) -> Any:
    """Give what a text says; raises ApplyError."""
    try:
        return yaml.load(text, _PlainLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        words = error.problem or error.context or "it cannot be read"
        raise ApplyError("", f"is no YAML: {place}{words}{_cure(words)}") from error
    except yaml.reader.ReaderError as error:
        words = f"is no YAML: byte {error.position + 1}: {error.reason}; it must be UTF-8"
        raise ApplyError("", words) from error
    except (ValueError, OverflowError) as error:
        # The library asks for the character of a number without looking at it.
        words = "is no YAML: the number behind a \\U is no character's"
        raise ApplyError("", words) from error


def _cure(words: str) -> str:
    return "; indent with spaces, not tabs" if "'\\t'" in words else ""


class _PlainLoader(yaml.SafeLoader):
    """Plain values alone, none deep, and no key twice."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a value; the library would run out of stack."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            words = f"this is more than {MAX_DEPTH} levels deep"
            raise yaml.MarkedYAMLError(problem=words, problem_mark=self.get_mark())
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a mapping, as it is written: what is merged into it comes later."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(
                    problem="a field's name must be a text", problem_mark=key.start_mark
                )
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value} is there twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return node

    def construct_scalar(self, node: Any) -> str:
        """Make a text that any database takes."""
        text = str(super().construct_scalar(node))
        if re.search("[\0\ud800-\udfff]", text):
            raise yaml.MarkedYAMLError(
                problem="this has a character that is none", problem_mark=node.start_mark
            )
        return text

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Make a value; where a tag is not that of its text, the library may raise anything."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            kind = node.tag.removeprefix(_CORE)
            raise yaml.MarkedYAMLError(
                problem=f"this is no {kind}", problem_mark=node.start_mark
            ) from error


# A table of its own: adding to the library's would leave in what it has.
_PlainLoader.yaml_implicit_resolvers = {}
for _name, _pattern in _PLAIN.items():
    _PlainLoader.add_implicit_resolver(_CORE + _name, re.compile(rf"(?:{_pattern})\Z"), None)
