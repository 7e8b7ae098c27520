"""Which holders share how much of a prompt? One walk along the prompt answers for all of them."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar

_CHUNK = 64

Holder = TypeVar("Holder", bound=Hashable)


class _Node(Generic[Holder]):
    """The end of an edge: ``tokens`` lead here from the parent, ``depth`` of them from the root."""

    __slots__ = ("children", "depth", "holders", "parent", "tokens")

    def __init__(self, parent: "_Node[Holder] | None", tokens: tuple[int, ...]) -> None:
        self.parent = parent
        self.tokens = tokens
        self.depth: int = len(tokens) + (parent.depth if parent else 0)
        self.children: dict[int, _Node[Holder]] = {}
        self.holders: dict[Holder, None] = {}


class RadixTree(Generic[Holder]):
    """Token sequences with compressed edges, and who holds each: a holder has one sequence.

    A prompt may leave the tree anywhere within an edge: whoever is below that point shares the
    tokens up to it. Holders of equal merit are found in order of insertion.
    """

    def __init__(self) -> None:
        self._root: _Node[Holder] = _Node(None, ())
        self._ends: dict[Holder, _Node[Holder]] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[Holder]:
        return iter(self._ends)

    def insert(self, tokens: Sequence[int], holder: Holder) -> None:
        """Say what a new holder has; may split an edge."""
        assert holder not in self._ends
        tokens = tuple(tokens)
        node, at = self._root, 0
        while at < len(tokens):
            child = node.children.get(tokens[at])
            if child is None:
                child = _Node(node, tokens[at:])
                node.children[tokens[at]] = child
            else:
                shared = _common_length(child.tokens, tokens, at)
                if shared < len(child.tokens):
                    child = _split(child, shared)
            node, at = child, child.depth
        node.holders[holder] = None
        self._ends[holder] = node

    def remove(self, holder: Holder) -> None:
        """Forget a holder; may drop a node or join two edges."""
        node = self._ends.pop(holder)
        del node.holders[holder]
        if not node.holders and not node.children and node.parent:
            del node.parent.children[node.tokens[0]]
            node = node.parent
        if not node.holders and len(node.children) == 1 and node.parent:
            _join(node)

    def matches(self, tokens: Sequence[int], limit: int) -> Iterator[tuple[int, Holder]]:
        """Give all holders with how many of the first ``limit`` tokens they share, most first.

        Those that share nothing are left out. The tree must not change meanwhile.
        """
        path, depth = self._walk(tuple(tokens[:limit]))
        seen: _Node[Holder] | None = None
        for node in reversed(path):
            for holder in _holders_below(node, seen):
                yield depth, holder
            seen = node
            depth = node.parent.depth if node.parent else 0
            if not depth:
                return

    def beginnings(self, holder: Holder) -> Iterator[Holder]:
        """Give the other holders of the same tokens or of fewer of them, the longest first."""
        node: _Node[Holder] | None = self._ends[holder]
        while node:
            for other in node.holders:
                if other is not holder:
                    yield other
            node = node.parent

    def check_integrity(self) -> None:
        """Assert what must always hold."""
        ends: dict[Holder, _Node[Holder]] = {}
        nodes = [self._root]
        while nodes:
            node = nodes.pop()
            is_needed = node.holders or len(node.children) > 1 or node is self._root
            assert is_needed, "an edge could be joined with the next"
            ends.update(dict.fromkeys(node.holders, node))
            for first, child in node.children.items():
                assert child.parent is node
                assert child.tokens and child.tokens[0] == first
                assert child.depth == node.depth + len(child.tokens)
                nodes.append(child)
        assert ends == self._ends

    def _walk(self, tokens: tuple[int, ...]) -> tuple[list[_Node[Holder]], int]:
        """Give the nodes along the tokens, the last perhaps only partly, and how far it went."""
        path: list[_Node[Holder]] = []
        node, depth = self._root, 0
        while depth == node.depth < len(tokens):
            child = node.children.get(tokens[depth])
            if child is None:
                break
            depth += _common_length(child.tokens, tokens, depth)
            path.append(child)
            node = child
        return path, depth


def _common_length(edge: tuple[int, ...], tokens: tuple[int, ...], start: int) -> int:
    """Count the equal tokens of an edge and of ``tokens[start:]``; compares whole chunks in C."""
    limit = min(len(edge), len(tokens) - start)
    at = 0
    while at < limit:
        end = min(at + _CHUNK, limit)
        if edge[at:end] != tokens[start + at : start + end]:
            break
        at = end
    while at < limit and edge[at] == tokens[start + at]:
        at += 1
    return at


def _split(node: _Node[Holder], length: int) -> _Node[Holder]:
    """Put a new node into the edge before a node, after so many tokens; returns the new one."""
    assert node.parent and 0 < length < len(node.tokens)
    middle = _Node(node.parent, node.tokens[:length])
    node.parent.children[middle.tokens[0]] = middle
    node.parent, node.tokens = middle, node.tokens[length:]
    middle.children[node.tokens[0]] = node
    return middle


def _join(node: _Node[Holder]) -> None:
    """Take a node out that has no holder and one child: its edge and the child's become one."""
    (child,) = node.children.values()
    assert node.parent
    child.parent, child.tokens = node.parent, node.tokens + child.tokens
    node.parent.children[node.tokens[0]] = child


def _holders_below(node: _Node[Holder], without: _Node[Holder] | None) -> Iterator[Holder]:
    """Give the holders at a node and below it, but for one child's."""
    nodes = [node]
    while nodes:
        node = nodes.pop()
        yield from node.holders
        nodes.extend(child for child in node.children.values() if child is not without)
