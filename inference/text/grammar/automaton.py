"""Where may one be in a grammar, and where after one more byte?

A state is the set of all places where a text may be, each with its stack of places to go back
to. States and the steps between them are found when they are needed and remembered, so that a
text costs little more than a look-up per byte. Every step is paid from a budget, so that a
grammar whose states explode never holds its thread for long.
"""

from collections.abc import Iterable
from threading import Lock
from typing import Optional, TypeAlias

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar.nodes import Node
from inference.text.grammar.program import (
    Call,
    Eat,
    EatToken,
    FindToken,
    Fork,
    Loop,
    Program,
    Return,
    compile_rules,
)

MAX_PLACES = 8192
# Deeper nesting is not offered; JSON readers stop about there too.
MAX_STACK = 512
MAX_STATES = 2000
MAX_FRAMES = 100_000


class Budget:
    """Steps that may still be taken; raises EngineError INVALID_GRAMMAR when there are none."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, cost: int = 1) -> None:
        """Take steps."""
        self.left -= cost
        if self.left < 0:
            raise too_complex()


def too_complex() -> EngineError:
    """Say that a grammar costs too much."""
    return EngineError(
        ErrorCode.INVALID_GRAMMAR,
        "The grammar is too ambiguous: one text can be read in too many ways. Where alternatives "
        "begin alike, write what they have in common once, before them.",
        param="grammar",
    )


class Frame:
    """What to go back to: a place behind a call, or a loop that ran ``count`` times."""

    __slots__ = ("below", "count", "depth", "place")

    def __init__(self, place: int, count: int, below: Optional["Frame"]) -> None:
        self.place, self.count, self.below = place, count, below
        self.depth: int = below.depth + 1 if below else 1


Thread: TypeAlias = tuple[int, Frame | None]


class State:
    """All places where one text may be. ``is_end``: the text may end here."""

    __slots__ = ("is_end", "steps", "threads")

    def __init__(self, threads: frozenset[Thread], is_end: bool) -> None:
        self.threads, self.is_end = threads, is_end
        self.steps: dict[int, State] = {}

    @property
    def is_dead(self) -> bool:
        """Whether no text of the grammar leads here."""
        return not self.threads and not self.is_end


class Automaton:
    """The states of one grammar. Safe to use from many threads."""

    def __init__(self, rules: dict[str, Node], find_token: FindToken) -> None:
        program: Program = compile_rules(rules, find_token)
        self._code = program.code
        self.byte_classes = program.byte_classes
        self.num_classes = program.num_classes
        self._frames: dict[tuple[int, int, Frame | None], Frame] = {}
        self._states: dict[tuple[frozenset[Thread], bool], State] = {}
        self._lock = Lock()
        self.dead = State(frozenset(), False)
        self.has_tokens = any(isinstance(step, EatToken) for step in self._code)
        self._entry = program.entry

    def start(self, budget: Budget) -> State:
        """Give the state of the empty text."""
        with self._lock:
            return self._settle([(self._entry, None)], budget)

    def step(self, state: State, kind: int, budget: Budget) -> State:
        """Give the state after a byte of a class."""
        found = state.steps.get(kind)
        if found is not None:
            return found
        with self._lock:
            after = []
            for place, frame in state.threads:
                eat = self._code[place]
                if type(eat) is Eat:
                    after += [(then, frame) for mask, then in eat.options if mask >> kind & 1]
            budget.spend(len(state.threads))
            found = state.steps[kind] = self._settle(after, budget)
            return found

    def walk(self, state: State, data: bytes, budget: Budget) -> State:
        """Give the state after some bytes."""
        for byte in data:
            state = self.step(state, self.byte_classes[byte], budget)
        return state

    def take_token(self, state: State, token: int, budget: Budget) -> State:
        """Give the state after a token that the grammar names as such."""
        with self._lock:
            after = []
            for place, frame in state.threads:
                eat = self._code[place]
                if type(eat) is EatToken and (eat.token == token) is not eat.is_negated:
                    after.append((eat.next, frame))
            budget.spend(len(state.threads))
            return self._settle(after, budget)

    def named_tokens(self, state: State, num_vocab: int) -> set[int]:
        """Give the tokens that a grammar names as such where a text is."""
        found: set[int] = set()
        for place, _ in state.threads:
            eat = self._code[place]
            if type(eat) is EatToken:
                found |= set(range(num_vocab)) - {eat.token} if eat.is_negated else {eat.token}
        return {token for token in found if token < num_vocab}

    def union(self, first: State, second: State) -> State:
        """Give the state of a text that may be at the places of either."""
        if first.is_dead or second.is_dead:
            return second if first.is_dead else first
        with self._lock:
            return self._state(first.threads | second.threads, first.is_end or second.is_end)

    def _settle(self, waiting: list[Thread], budget: Budget) -> State:
        """Follow everything that reads no byte."""
        seen, threads, is_end = set(waiting), set(), False
        while waiting:
            thread = waiting.pop()
            place, frame = thread
            step = self._code[place]
            budget.spend()
            if type(step) is Eat or type(step) is EatToken:
                threads.add(thread)
                if len(threads) > MAX_PLACES:
                    raise too_complex()
                continue
            if frame is None and type(step) is Return:
                is_end = True
                continue
            for target in self._follow(place, frame):
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return self._state(frozenset(threads), is_end)

    def _follow(self, place: int, frame: Frame | None) -> Iterable[Thread]:
        step = self._code[place]
        if type(step) is Fork:
            return [(target, frame) for target in step.targets]
        if type(step) is Call:
            if step.back is None:
                return [(step.entry, frame)]
            return self._push(step.entry, step.back, 0, frame)
        if type(step) is Loop:
            begin = self._push(step.body, place, 1, frame)
            return begin if step.least else [*begin, (step.next, frame)]
        assert frame is not None
        return self._go_back(frame)

    def _go_back(self, frame: Frame) -> Iterable[Thread]:
        loop = self._code[frame.place]
        if not frame.count:
            return [(frame.place, frame.below)]
        assert isinstance(loop, Loop)
        targets = [(loop.next, frame.below)] if frame.count >= loop.least else []
        if loop.most is None:
            again = min(frame.count + 1, loop.least)
            return [*targets, *self._push(loop.body, frame.place, again, frame.below)]
        if frame.count < loop.most:
            targets += self._push(loop.body, frame.place, frame.count + 1, frame.below)
        return targets

    def _push(self, entry: int, place: int, count: int, below: Frame | None) -> list[Thread]:
        """Enter a body with a frame to come back to; equal frames are one object."""
        frame = self._frames.get((place, count, below))
        if frame is None:
            frame = self._frames[place, count, below] = Frame(place, count, below)
        return [(entry, frame)] if frame.depth <= MAX_STACK else []

    def _state(self, threads: frozenset[Thread], is_end: bool) -> State:
        if not threads and not is_end:
            return self.dead
        state = self._states.get((threads, is_end))
        if state is None:
            if len(self._states) >= MAX_STATES or len(self._frames) >= MAX_FRAMES:
                self._forget()
            state = self._states[threads, is_end] = State(threads, is_end)
        return state

    def _forget(self) -> None:
        """Start over with the memory of states; those in use stay whole."""
        for state in self._states.values():
            state.steps.clear()
        self._states.clear()
        self._frames.clear()
