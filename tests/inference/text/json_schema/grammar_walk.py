"""Walk a grammar byte by byte: along a text, or at random."""

from functools import lru_cache
from random import Random

from inference.text.grammar import Automaton, Budget, State, read_grammar
from inference.text.grammar.program import Eat

_CLOSERS = b'"]}0'


@lru_cache(64)
def open_automaton(grammar: str) -> Automaton:
    """Compile a grammar that names no tokens."""
    return Automaton(read_grammar(grammar), lambda _: None)


def accepts(grammar: str, text: str) -> bool:
    """Tell whether a text, and its end, is what the grammar allows."""
    automaton, budget = open_automaton(grammar), Budget(1_000_000)
    return automaton.walk(automaton.start(budget), text.encode(), budget).is_end


def write_at_random(grammar: str, random: Random, *, num_bytes: int = 600) -> str | None:
    """Write any text that likes to close what is open; None if it does not end."""
    automaton, budget = open_automaton(grammar), Budget(3_000_000)
    members: dict[int, list[int]] = {}
    for byte, kind in enumerate(automaton.byte_classes):
        members.setdefault(kind, []).append(byte)
    closers = {automaton.byte_classes[byte]: byte for byte in _CLOSERS}
    state, text = automaton.start(budget), bytearray()
    while len(text) < num_bytes:
        kinds = _next_kinds(automaton, state)
        if state.is_end and (not kinds or random.random() < 0.5):
            return text.decode()
        closing = [kind for kind in kinds if kind in closers]
        is_closing = closing and random.random() < 0.1 + len(text) / 200
        kind = random.choice(closing if is_closing else kinds)
        text.append(closers[kind] if is_closing else random.choice(members[kind]))
        state = automaton.step(state, kind, budget)
    return None


def _next_kinds(automaton: Automaton, state: State) -> list[int]:
    """Give the classes of bytes that may come next."""
    mask = 0
    for place, _ in state.threads:
        eat = automaton._code[place]
        assert isinstance(eat, Eat)
        for kinds, _ in eat.options:
            mask |= kinds
    return [kind for kind in range(automaton.num_classes) if mask >> kind & 1]
