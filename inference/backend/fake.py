"""A model without weights: deterministic, instant or as slow as told, and strict about positions.

Its next token depends on every token of the sequence, so a wrong prefix, a lost token or a mixed
up sequence shows as wrong text. Tokens are bytes: token 2 + b is the byte b; 0 ends, 1 begins.
"""

import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import parse_qs, urlsplit

import msgspec
import numpy as np
from numpy.typing import NDArray

from inference.backend.base import NO_CELLS, DecodeError, InputPart, Sampler, Sharing, Slice
from inference.backend.fake_cells import FakeCells
from inference.backend.greedy import BestToken
from inference.backend.logit_edits import LogitEdits
from inference.backend.plugins import installed_plugins
from inference.backend.token_sampler import TokenSampler
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import GenerationJob, Loras
from inference.protocol.replicas import AdapterFacts, ModelFacts, RuntimeProfile
from inference.protocol.text import PairLayout

EOS, BOS, FIRST_BYTE = 0, 1, 2
NUM_VOCAB = FIRST_BYTE + 256
_DIMENSIONS = 8
_LETTERS = b"etaoin shrdlu"
_CHAT_TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"

NextToken = Callable[[Sequence[int]], int]


class FakeModel:
    """A vocabulary of bytes."""

    def __init__(
        self, context_length: int = 8192, *, adapters: tuple[AdapterFacts, ...] = ()
    ) -> None:
        self.context_length = context_length
        self.eog_tokens: NDArray[np.int32] = np.array([EOS], np.int32)
        self.suppressed_tokens: NDArray[np.int32] = np.empty(0, np.int32)
        self._facts = ModelFacts(
            num_vocab=NUM_VOCAB,
            context_length=context_length,
            num_ctx_train=context_length,
            num_embd=_DIMENSIONS,
            description="fake",
            has_chat_template=True,
            chat_template=_CHAT_TEMPLATE,
            bos_token="<s>",
            eos_token="</s>",
            bos_token_id=BOS,
            eos_token_id=EOS,
            end_tokens=(EOS,),
            num_prefix_tokens=1,
            adapters=adapters,
            sampler_plugins=tuple(installed_plugins()),
        )

    def facts(self) -> ModelFacts:
        """Tell what the model says of itself."""
        return self._facts

    def pair_layout(self) -> PairLayout:
        """Join pairs as an encoder does."""
        return PairLayout(before=(BOS,), between=(EOS,), after=(EOS,))

    def describe_vectors(self, pooling: str, num_dimensions: int) -> None:
        """Note what vectors are computed from the model, for its facts."""
        self._facts = msgspec.structs.replace(
            self._facts, pooling=pooling, num_dimensions=num_dimensions
        )

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Turn text into one token per byte."""
        tokens = [FIRST_BYTE + byte for byte in text.encode("utf-8", "replace")]
        return [BOS, *tokens] if add_special else tokens

    def token_bytes(self, token: int) -> bytes:
        """Give the bytes of a token as written."""
        return (b"</s>", b"<s>")[token] if token < FIRST_BYTE else bytes([token - FIRST_BYTE])

    def text_bytes(self, token: int) -> bytes:
        """Give the bytes of a token as generated text."""
        return b"" if token < FIRST_BYTE else bytes([token - FIRST_BYTE])

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """Join the bytes of the tokens."""
        return b"".join(map(self.token_bytes, tokens))

    def control_tokens(self) -> dict[str, int]:
        """Map the spelling of each control token to its id."""
        return {"</s>": EOS, "<s>": BOS}

    def is_end_of_generation(self, token: int) -> bool:
        """Tell whether generation ends with this token."""
        return token == EOS


class FakeBackend:
    """A context over a FakeModel. ``fails_for`` names the slices whose batch fails."""

    def __init__(
        self,
        model: FakeModel,
        *,
        next_token: NextToken | None = None,
        step_seconds: float = 0.0,
        token_seconds: float = 0.0,
        fails_for: Callable[[Slice], bool] = lambda _: False,
        state_window: int | None = None,
        num_cells: int = 0,
        can_shift: bool = True,
    ) -> None:
        self.model = model
        self.state_window = state_window
        self.cells = FakeCells(num_cells) if num_cells else None
        self.can_shift = can_shift
        self.next_token = next_token or letter_by_checksum
        self.fails_for = fails_for
        self.sequences: dict[int, list[int]] = {}
        self.first_kept: dict[int, int] = {}
        self.batches: list[tuple[tuple[int, int], ...]] = []
        self.num_open_samplers = 0
        self.loras: Loras = ()
        self._step_seconds, self.token_seconds = step_seconds, token_seconds

    def use_adapters(self, loras: Loras) -> None:
        """Have the next rows depend on the adapters as well."""
        self.loras = loras

    def decode(self, slices: Sequence[Slice]) -> NDArray[np.float32]:
        """Append each slice to its sequence; every position must be the next one."""
        assert [piece.seq_id for piece in slices] == sorted({piece.seq_id for piece in slices})
        num_tokens = sum(len(piece.tokens) for piece in slices)
        if seconds := self._step_seconds + self.token_seconds * num_tokens:
            time.sleep(seconds)  # no time at all would still be a turn for every other process
        self.batches.append(tuple((piece.seq_id, len(piece.tokens)) for piece in slices))
        if any(map(self.fails_for, slices)):
            raise DecodeError(-3)
        if self.cells and not self.cells.take((one.seq_id, len(one.tokens)) for one in slices):
            raise DecodeError(NO_CELLS)
        rows: list[NDArray[np.float32]] = []
        for piece in slices:
            sequence = self.sequences.setdefault(piece.seq_id, [])
            assert len(sequence) == piece.start, "positions must follow each other"
            assert self._is_complete(piece.seq_id, piece.start), "what is looked at must be there"
            first_row = piece.start + len(piece.tokens) - piece.num_logits
            sequence.extend(piece.tokens)
            rows.extend(self._row(sequence[: at + 1]) for at in range(first_row, len(sequence)))
        return np.stack(rows) if rows else np.empty((0, NUM_VOCAB), np.float32)

    def open_sampler(self, job: GenerationJob) -> Sampler:
        """Build a greedy sampler, whatever the job asks; 'bad' is no grammar."""
        if job.sampling.grammar == "bad":
            raise EngineError(ErrorCode.INVALID_GRAMMAR, "The grammar could not be parsed.")
        self.num_open_samplers += 1
        return _CountedSampler(self, job)

    def keep_prefix(self, seq_id: int, num_tokens: int) -> int:
        """Drop all but the first tokens of a sequence; none stay where they are not all there."""
        sequence = self.sequences.setdefault(seq_id, [])
        is_whole = num_tokens == len(sequence)
        can_cut = num_tokens < len(sequence) and self.state_window != 0
        if not (is_whole or can_cut) or not self._is_complete(seq_id, num_tokens):
            num_tokens = 0
        del sequence[num_tokens:]
        if self.cells:
            self.cells.keep(seq_id, num_tokens)
        if not num_tokens:
            self.first_kept[seq_id] = 0
        return num_tokens

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of another."""
        if self.cells:
            self.cells.share(source, target, num_tokens)
            self.sequences[target] = self.sequences.get(source, [])[:num_tokens]
            return self.keep_prefix(target, num_tokens)
        state = self.save_state(source, sys.maxsize)
        assert state is not None
        return self.restore_state(target, state, num_tokens)

    def save_state(self, seq_id: int, max_bytes: int) -> memoryview | None:
        """Copy a sequence out: its tokens, four bytes each."""
        state = np.array(self.sequences.get(seq_id, []), np.int32).view(np.uint8).data
        return state if state.nbytes <= max_bytes else None

    def restore_state(self, seq_id: int, state: memoryview, num_tokens: int) -> int:
        """Replace a sequence by the first tokens of a saved one."""
        tokens = np.frombuffer(state, np.int32).tolist()
        if self.cells:
            self.cells.keep(seq_id, 0)
            if not self.cells.take([(seq_id, len(tokens))]):
                return self.keep_prefix(seq_id, 0)
        self.sequences[seq_id] = tokens
        window = len(tokens) if self.state_window is None else self.state_window
        self.first_kept[seq_id] = max(0, len(tokens) - window)
        return self.keep_prefix(seq_id, num_tokens)

    def shift(self, seq_id: int, num_keep: int, num_drop: int) -> None:
        """Drop tokens behind the first of a sequence."""
        assert self.can_shift and not self.cells
        del self.sequences[seq_id][num_keep : num_keep + num_drop]

    def sharing_among(self, seq_ids: Iterable[int]) -> Sharing:
        """Tell that each sequence is computed by itself."""
        return Sharing()

    def close(self) -> None:
        """Forget everything."""
        self.sequences.clear()

    def _is_complete(self, seq_id: int, num_tokens: int) -> bool:
        """Tell whether a sequence has all that the token after the first ones looks at."""
        window = self.state_window
        return not window or self.first_kept.get(seq_id, 0) <= max(0, num_tokens - window)

    def _row(self, sequence: Sequence[int]) -> NDArray[np.float32]:
        row = np.linspace(1.0, 0.0, NUM_VOCAB, dtype=np.float32)
        row[self.next_token([*sequence, *(hash(one) % 997 for one in self.loras)])] = 10.0
        return row


class _CountedSampler(TokenSampler):
    """A greedy sampler that tells its backend when it is closed."""

    def __init__(self, backend: FakeBackend, job: GenerationJob) -> None:
        super().__init__(backend.model, job, BestToken(), LogitEdits(backend.model, job))
        self._backend: FakeBackend | None = backend

    def close(self) -> None:
        """Leave the count of open samplers; idempotent."""
        backend, self._backend = self._backend, None
        if backend:
            backend.num_open_samplers -= 1


class FakeEmbedder:
    """Vectors that depend on every token of an input; strict about parts, like FakeBackend."""

    max_batch_tokens = 512
    max_batch_inputs = 16

    def __init__(
        self,
        model: FakeModel,
        *,
        fails_for: Callable[[Sequence[int]], bool] = lambda _: False,
        can_split: bool = False,
        token_seconds: float = 0.0,
        pooling: str = "mean",
    ) -> None:
        self.model = model
        self.fails_for = fails_for
        self.can_split = can_split
        self.num_cells = model.context_length + self.max_batch_tokens if can_split else 2**62
        self.begun: dict[int, list[int]] = {}
        self.batches: list[tuple[int, ...]] = []
        self._token_seconds = token_seconds
        model.describe_vectors(pooling, _DIMENSIONS)

    def embed(self, parts: Sequence[InputPart]) -> list[NDArray[np.float32]]:
        """Compute one vector per input that is complete."""
        sizes = tuple(len(part.tokens) for part in parts)
        assert sum(sizes) <= self.max_batch_tokens or (len(sizes) == 1 and not self.can_split)
        assert len({part.seq_id for part in parts}) == len(parts) <= self.max_batch_inputs
        if seconds := self._token_seconds * sum(sizes):
            time.sleep(seconds)
        self.batches.append(sizes)
        if any(self.fails_for(part.tokens) for part in parts):
            raise DecodeError(-3)
        return [self._rows(part) for part in parts]

    def drop(self, seq_id: int) -> None:
        """Forget an input."""
        self.begun.pop(seq_id, None)

    def close(self) -> None:
        """Do nothing."""

    def _rows(self, part: InputPart) -> NDArray[np.float32]:
        tokens = self.begun.setdefault(part.seq_id, [])
        assert len(tokens) == part.start, "positions must follow each other"
        assert self.can_split or part.is_last
        tokens.extend(part.tokens)
        assert sum(map(len, self.begun.values())) <= self.num_cells
        if self.model.facts().pooling == "none":
            ends = range(part.start + 1, len(tokens) + 1)
            return np.stack([_draw_row(tokens[:end]) for end in ends])
        rows = [_draw_row(tokens)] if part.is_last else []
        return np.array(rows, np.float32).reshape(-1, _DIMENSIONS)


def _draw_row(tokens: Sequence[int]) -> NDArray[np.float32]:
    seed = zlib.crc32(np.array(tokens, np.int32).tobytes())
    return np.random.default_rng(seed).standard_normal(_DIMENSIONS).astype(np.float32)


def letter_by_checksum(sequence: Sequence[int]) -> int:
    """Choose a letter by all tokens so far; never ends by itself."""
    return letter_of(zlib.crc32(np.array(sequence, np.int32).tobytes()))


def letter_of(checksum: int) -> int:
    """Choose a letter by the checksum of all tokens so far."""
    return FIRST_BYTE + _LETTERS[checksum % len(_LETTERS)]


def fake_from_path(path: str, profile: RuntimeProfile) -> FakeBackend:
    """Build a fake from a path such as ``fake:?step_ms=5&token_ms=0.1``.

    ``abort_on=99`` ends the process when that token is computed, ``hang_on=99`` stands still.
    """
    options = parse_qs(urlsplit(path).query)

    def seconds(name: str) -> float:
        return float(options.get(name, ["0"])[0]) / 1000

    return FakeBackend(
        FakeModel(profile.sequence_cells),
        step_seconds=seconds("step_ms"),
        token_seconds=seconds("token_ms"),
        fails_for=_mishap(options),
    )


def _mishap(options: dict[str, list[str]]) -> Callable[[Slice], bool]:
    """Do what native code can do to its process, at the tokens that were named."""
    abort_on, hang_on = (int(options.get(name, ["-1"])[0]) for name in ("abort_on", "hang_on"))

    def strike(piece: Slice) -> bool:
        if abort_on in piece.tokens:
            os.abort()
        if hang_on in piece.tokens:
            threading.Event().wait()
        return False

    return strike
