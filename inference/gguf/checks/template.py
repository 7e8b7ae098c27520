"""Are the chat templates small, and free of what a sandbox should never have to stop?"""

from collections.abc import Iterator

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from inference.gguf.values import Header
from inference.gguf.verdict import GgufRejected

MAX_TEMPLATE_BYTES = 256 * 1024
MAX_NODES = 20_000
MAX_LOOP_DEPTH = 4
_FORBIDDEN = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
_PREFIX = "tokenizer.chat_template"


class GenerationTag(Extension):
    """Understand the ``generation`` block of training templates; it changes no text."""

    tags = frozenset({"generation"})  # type: ignore[assignment]

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Take the block's body as if the tag were not there."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def check_templates(header: Header) -> None:
    """Check every chat template of the file, the named ones too."""
    for key, value in header.metadata.items():
        if not key.startswith(_PREFIX) or value.type.name == "ARRAY":
            continue
        if value.text is None or len(value.data) > MAX_TEMPLATE_BYTES:
            raise GgufRejected("template", f"{key} is no text of at most 256 KiB.", value.offset)
        try:
            _check_source(value.text)
        except ValueError as error:
            raise GgufRejected("template", f"{key}: {error}", value.offset) from error


def _check_source(source: str) -> None:
    """Raise ValueError, with words, for a template that may not be rendered."""
    environment = ImmutableSandboxedEnvironment(
        extensions=["jinja2.ext.loopcontrols", GenerationTag]
    )
    try:
        tree = environment.parse(source)
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.message}") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    for count, (node, depth) in enumerate(_walk(tree)):
        if count > MAX_NODES:
            raise ValueError(f"it has more than {MAX_NODES} parts")
        if depth > MAX_LOOP_DEPTH:
            raise ValueError(f"its loops are nested deeper than {MAX_LOOP_DEPTH}")
        _check_node(node)


def _walk(tree: nodes.Node) -> Iterator[tuple[nodes.Node, int]]:
    """Give every node with the number of loops around and including it."""
    pending = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        depth += isinstance(node, nodes.For)
        yield node, depth
        pending.extend((child, depth) for child in node.iter_child_nodes())


def _check_node(node: nodes.Node) -> None:
    if isinstance(node, _FORBIDDEN):
        raise ValueError("it loads another template")
    if isinstance(node, nodes.Name) and node.name.startswith("__"):
        raise ValueError(f"it uses the name {node.name}")
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        raise ValueError(f"it uses the attribute {node.attr}")
    if isinstance(node, nodes.Getitem) and _is_private_text(node.arg):
        raise ValueError("it looks up a private attribute")
    if isinstance(node, nodes.Filter):
        arguments = [*node.args, *(keyword.value for keyword in node.kwargs)]
        if node.name == "attr" or any(_is_private_text(argument) for argument in arguments):
            raise ValueError(f"it uses the filter {node.name} to reach attributes")


def _is_private_text(node: nodes.Node | None) -> bool:
    """Whether an expression is the text of an attribute that no template may read."""
    return isinstance(node, nodes.Const) and isinstance(node.value, str) and "__" in node.value
