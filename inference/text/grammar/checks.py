"""Is a grammar one that a matcher can follow? Every rule exists, and none begins with itself."""

from collections.abc import Callable, Iterator

from inference.text.grammar.nodes import Chars, Choice, Node, Repeat, Rule, Sequence, Text, Token
from inference.text.grammar.syntax import parse_rules, refuse

ROOT = "root"


def read_grammar(text: str) -> dict[str, Node]:
    """Give the rules of a sound grammar; raises EngineError INVALID_GRAMMAR with a position."""
    rules = parse_rules(text)
    if ROOT not in rules:
        refuse(f"No rule is named '{ROOT}', needed", len(text))
    for node in rules.values():
        for call in _calls(node):
            if call.name not in rules:
                refuse(f"No rule is named '{call.name[:64]}', needed", call.at)
    _refuse_left_recursion(rules)
    return rules


def _calls(node: Node) -> Iterator[Rule]:
    """Give every place where a node names a rule."""
    match node:
        case Rule():
            yield node
        case Sequence(children) | Choice(children):
            for child in children:
                yield from _calls(child)
        case Repeat(part):
            yield from _calls(part)


def _refuse_left_recursion(rules: dict[str, Node]) -> None:
    """Refuse a rule that may come back to itself before a single character."""
    nullable = _nullable_rules(rules)
    begins = {
        name: {call.name: call.at for call in _beginnings(node, nullable)}
        for name, node in rules.items()
    }
    done: set[str] = set()
    for start in rules:
        path, waiting = [start], [iter(begins[start].items())]
        while path:
            step = next(waiting[-1], None)
            if step is None:
                done.add(path.pop())
                waiting.pop()
            elif step[0] in path:
                refuse(f"Rule '{step[0][:64]}' is left-recursive: it begins with itself", step[1])
            elif step[0] not in done:
                path.append(step[0])
                waiting.append(iter(begins[step[0]].items()))


def _nullable_rules(rules: dict[str, Node]) -> set[str]:
    """Name the rules that match the empty text."""
    return _least_set(rules, _is_nullable)


def endless_rules(rules: dict[str, Node]) -> set[str]:
    """Name the rules of which no text ever ends, as that of a list that must hold such a list."""
    return rules.keys() - _least_set(rules, _may_end)


def _least_set(rules: dict[str, Node], holds: Callable[[Node, set[str]], bool]) -> set[str]:
    """Name the rules of which something holds because of others of which it does."""
    found: set[str] = set()
    callers: dict[str, set[str]] = {name: set() for name in rules}
    for name, node in rules.items():
        for call in _calls(node):
            callers[call.name].add(name)
    waiting = set(rules)
    while waiting:
        name = waiting.pop()
        if name not in found and holds(rules[name], found):
            found.add(name)
            waiting |= callers[name]
    return found


def _may_end(node: Node, ending: set[str]) -> bool:
    return _is_made(node, ending, lambda _: True)


def _is_nullable(node: Node, nullable: set[str]) -> bool:
    return _is_made(node, nullable, lambda leaf: isinstance(leaf, Text) and not leaf.text)


def _is_made(node: Node, known: set[str], is_leaf: Callable[[Chars | Text | Token], bool]) -> bool:
    """Tell whether a node can be made of these leaves and of rules that are known to be."""
    match node:
        case Rule(name):
            return name in known
        case Sequence(parts):
            return all(_is_made(part, known, is_leaf) for part in parts)
        case Choice(options):
            return any(_is_made(option, known, is_leaf) for option in options)
        case Repeat(part, least):
            return least == 0 or _is_made(part, known, is_leaf)
    return is_leaf(node)


def _beginnings(node: Node, nullable: set[str]) -> Iterator[Rule]:
    """Give the rules that a node may begin with."""
    match node:
        case Rule():
            yield node
        case Choice(options):
            for option in options:
                yield from _beginnings(option, nullable)
        case Repeat(part):
            yield from _beginnings(part, nullable)
        case Sequence(parts):
            for part in parts:
                yield from _beginnings(part, nullable)
                if not _is_nullable(part, nullable):
                    return
