"""Read YAML as version 1.2 means it, of plain values alone; what cannot be read has its line."""

import re
from itertools import chain
from typing import Any

import yaml

from llamero.apply.mistakes import ApplyError

MAX_DEPTH = 40
# Each alias counts as all that it stands for.
MAX_VALUES = 50_000
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
    """Plain values alone, none deep, not too many with what aliases stand for, no key twice."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self._depth = 0
        # By the identity of nodes, all of which are kept by the document.
        self._num_values: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        """Compose a value; the library would run out of stack, or of memory."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _mistake(event, f"this is more than {MAX_DEPTH} levels deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if not isinstance(event, yaml.AliasEvent):
            self._num_values[id(node)] = self._count(node)
        elif id(node) not in self._num_values:
            raise _mistake(event, "this is an alias of what it is in")
        # All at first, so that the rest of a long list need not be read.
        if max(len(self._num_values), self._num_values[id(node)]) > MAX_VALUES:
            words = f"this has more than {MAX_VALUES:,} values, with what aliases stand for"
            raise _mistake(event, words)
        return node

    def _count(self, node: Any) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        is_mapping = isinstance(node, yaml.MappingNode)
        parts = chain.from_iterable(node.value) if is_mapping else node.value
        return 1 + sum(self._num_values[id(part)] for part in parts)

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


def _mistake(event: Any, words: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=words, problem_mark=event.start_mark)


# A table of its own: adding to the library's would leave in what it has.
_PlainLoader.yaml_implicit_resolvers = {}
for _name, _pattern in _PLAIN.items():
    _PlainLoader.add_implicit_resolver(_CORE + _name, re.compile(rf"(?:{_pattern})\Z"), None)
