"""What does an engine need from the library that computes?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from inference.protocol.events import TokenLogprob
from inference.protocol.jobs import GenerationJob, Loras
from inference.protocol.replicas import ModelFacts
from inference.protocol.text import PairLayout

Row = NDArray[np.float32]
Rows = NDArray[np.float32]


class Slice(msgspec.Struct, frozen=True):
    """Tokens of one sequence to compute at positions ``start``.. in one step.

    The last ``num_logits`` of them give a row of logits each.
    """

    seq_id: int
    start: int
    tokens: Sequence[int]
    num_logits: int


class Choice(msgspec.Struct, frozen=True):
    """A sampled token and, where the job asked for it, how likely it was.

    ``is_end``: nothing can follow, whatever the token means.
    """

    token: int
    logprob: TokenLogprob | None = None
    is_end: bool = False


class Sharing(NamedTuple):
    """How many sequences attend to one beginning together, and how many tokens it has."""

    num_sequences: int = 0
    num_tokens: int = 0


NO_CELLS = 1
"""The code of a batch that the KV cache has no room for; nothing of it was computed."""


class DecodeError(Exception):
    """The library refused or failed to compute a batch."""

    def __init__(self, code: int) -> None:
        super().__init__(f"decode failed with code {code}")
        self.code = code


class Sampler(Protocol):
    """Choose the tokens of one sequence. Owns native memory until closed."""

    def sample(self, row: Row) -> Choice:
        """Choose a token from the logits and remember it. May scribble on the row."""
        ...

    def accept(self, token: int) -> None:
        """Remember a token as if it had been sampled: an earlier attempt chose it."""
        ...

    def close(self) -> None:
        """Give the native memory back; idempotent."""
        ...


class Model(Protocol):
    """The vocabulary and facts of a loaded model; read-only and thread-safe."""

    def facts(self) -> ModelFacts:
        """Tell what the model says of itself."""
        ...

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Turn text into token ids."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """Give the bytes of a token as written, the names of control tokens included."""
        ...

    def text_bytes(self, token: int) -> bytes:
        """Give the bytes of a token as generated text: nothing for control tokens."""
        ...

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """Turn token ids back into the bytes they were made of."""
        ...

    @property
    def eog_tokens(self) -> NDArray[np.int32]:
        """The tokens with which the model ends its answer."""
        ...

    @property
    def suppressed_tokens(self) -> NDArray[np.int32]:
        """The tokens that its makers want never to be generated."""
        ...

    def control_tokens(self) -> dict[str, int]:
        """Map the spelling of each control token to its id."""
        ...

    def is_end_of_generation(self, token: int) -> bool:
        """Tell whether a model ends its answer with this token."""
        ...

    def pair_layout(self) -> PairLayout:
        """Tell how a query and a document are joined, to be scored together."""
        ...


class Backend(Protocol):
    """One context of a generative model: a KV cache with a sequence per slot. One thread only."""

    @property
    def model(self) -> Model:
        """The model behind the context."""
        ...

    def use_adapters(self, loras: Loras) -> None:
        """Compute with these LoRA adapters from now on, and with no others."""
        ...

    def decode(self, slices: Sequence[Slice]) -> NDArray[np.float32]:
        """Compute slices, ordered by sequence id; raises DecodeError.

        Returns the rows of logits that the slices want, in order, valid until the next call.
        """
        ...

    def open_sampler(self, job: GenerationJob) -> Sampler:
        """Build the sampler of a job; raises EngineError. Safe to call from any thread."""
        ...

    def keep_prefix(self, seq_id: int, num_tokens: int) -> int:
        """Drop all but the first tokens of a sequence; returns how many stayed.

        Fewer than asked for stay (then none) where the model cannot drop a part of a sequence.
        """
        ...

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of another; returns how many it holds now."""
        ...

    @property
    def can_shift(self) -> bool:
        """Whether computed tokens can be moved to lower positions."""
        ...

    def shift(self, seq_id: int, num_keep: int, num_drop: int) -> None:
        """Drop tokens behind the first of a sequence, and move what follows up to them.

        No other sequence may share the cells that move.
        """
        ...

    @property
    def state_window(self) -> int | None:
        """For how many of its last tokens a copied or saved state is complete.

        None means for all of them: it can be cut anywhere. 0 means that it can never be cut.
        """
        ...

    def save_state(self, seq_id: int, max_bytes: int) -> memoryview | None:
        """Copy the state of a sequence out of the cache; None where it is too large."""
        ...

    def restore_state(self, seq_id: int, state: memoryview, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of a saved one; returns how many it holds now.

        The state must be one that this context saved: its bytes are not checked.
        """
        ...

    def sharing_among(self, seq_ids: Iterable[int]) -> Sharing:
        """Tell what these sequences have in common right now; safe from any thread."""
        ...

    def close(self) -> None:
        """Free the context; the model stays."""
        ...


@dataclass(frozen=True, slots=True)
class InputPart:
    """Tokens of one input at positions ``start``.., as sequence ``seq_id``."""

    seq_id: int
    start: int
    tokens: Sequence[int]
    is_last: bool


class Embedder(Protocol):
    """One context that turns inputs into vectors. One thread only.

    Inputs share a batch of at most ``max_batch_tokens`` and ``max_batch_inputs``. Where
    ``can_split``, an input may come in parts over several batches, and all inputs that have begun
    and not ended hold at most ``num_cells`` tokens; elsewhere inputs come whole, and one alone may
    exceed ``max_batch_tokens``.
    """

    max_batch_tokens: int
    max_batch_inputs: int
    can_split: bool
    num_cells: int

    @property
    def model(self) -> Model:
        """The model behind the context."""
        ...

    def embed(self, parts: Sequence[InputPart]) -> list[NDArray[np.float32]]:
        """Compute one batch; raises DecodeError.

        Returns a table per part: where inputs are pooled one row for a last part and none for
        others, elsewhere a row per token. Its inputs keep their memory until ``drop``.
        """
        ...

    def drop(self, seq_id: int) -> None:
        """Forget an input, whole or begun."""
        ...

    def close(self) -> None:
        """Free the context; the model stays."""
        ...
