"""The grammars of one model's jobs, compiled once and kept while they are in use.

Compiling and all that is learned of a grammar on the way (its states, and which tokens each of
them permits) is shared by the sequences that follow it, at once or later.
"""

from collections import OrderedDict
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Model
from inference.backend.token_trie import TokenTrie
from inference.text.grammar import Automaton, Budget, State, read_grammar

MAX_GRAMMARS = 32
MAX_MASK_BYTES = 2 << 20


class Grammar:
    """One grammar over the tokens of one model."""

    def __init__(self, text: str, vocabulary: "Vocabulary") -> None:
        self._vocabulary = vocabulary
        self._automaton = Automaton(read_grammar(text), vocabulary.find_token)
        self._masks: OrderedDict[State, bytes] = OrderedDict()
        self._lock = Lock()
        self._max_masks = max(1, MAX_MASK_BYTES * 8 // vocabulary.num_vocab)

    def start(self, budget: Budget) -> State:
        """Give the state of the empty text."""
        return self._automaton.start(budget)

    def step(self, state: State, token: int, spelling: bytes, budget: Budget) -> State:
        """Give the state after a token; one that spells nothing can only be meant by its id."""
        automaton = self._automaton
        after = automaton.walk(state, spelling, budget) if spelling else automaton.dead
        if automaton.has_tokens:
            after = automaton.union(after, automaton.take_token(state, token, budget))
        return after

    def walk(self, state: State, text: bytes, budget: Budget) -> State:
        """Give the state after some bytes, however tokens spell them."""
        return self._automaton.walk(state, text, budget)

    def mask(self, state: State, budget: Budget) -> NDArray[np.bool_]:
        """Tell of each token whether it may follow a state, those that end a text included."""
        with self._lock:
            packed = self._masks.pop(state, None)
        if packed is None:
            allowed = self._vocabulary.trie.allowed(self._automaton, state, budget)
            for token in self._automaton.named_tokens(state, self._vocabulary.num_vocab):
                allowed[token] = True
            allowed[self._vocabulary.ends] = state.is_end
            packed = np.packbits(allowed).tobytes()
        with self._lock:
            self._masks[state] = packed
            if len(self._masks) > self._max_masks:
                self._masks.popitem(last=False)
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=self._vocabulary.num_vocab)
        return bits.view(np.bool_)


class Vocabulary:
    """What grammars need of a model: how its tokens are spelled, and which of them end a text."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.num_vocab = model.facts().num_vocab
        self.spellings = [
            b"" if model.is_end_of_generation(token) else model.text_bytes(token)
            for token in range(self.num_vocab)
        ]
        self.ends = np.array(
            [token for token in range(self.num_vocab) if model.is_end_of_generation(token)],
            np.int32,
        )
        self.trie = TokenTrie(self.spellings)

    def find_token(self, spelling: str) -> int | None:
        """Give the one token of this spelling."""
        tokens = self._model.tokenize(f"<{spelling}>", add_special=False, parse_special=True)
        return tokens[0] if len(tokens) == 1 else None


class Grammars:
    """The grammars of a model, the latest used ones kept. Safe to use from many threads."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._vocabulary: Vocabulary | None = None
        self._grammars: OrderedDict[str, Grammar] = OrderedDict()
        self._lock = Lock()

    def find(self, text: str) -> Grammar:
        """Give the grammar of a text; raises EngineError INVALID_GRAMMAR."""
        with self._lock:
            grammar = self._grammars.pop(text, None)
            if grammar is None:
                grammar = Grammar(text, self._open_vocabulary())
                if len(self._grammars) >= MAX_GRAMMARS:
                    self._grammars.popitem(last=False)
            self._grammars[text] = grammar
            return grammar

    def _open_vocabulary(self) -> Vocabulary:
        """Read the vocabulary when the first grammar comes: it takes a moment."""
        if self._vocabulary is None:
            self._vocabulary = Vocabulary(self._model)
        return self._vocabulary
