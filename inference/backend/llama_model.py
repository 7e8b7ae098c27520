"""Which tokens does the loaded GGUF know, and what does it say of itself?"""

import ctypes
from collections.abc import Callable, Sequence

import llama_cpp
import msgspec
import numpy as np
from numpy.typing import NDArray

from inference.backend import native
from inference.backend.devices import check_devices, list_native_devices
from inference.backend.grammars import Grammars
from inference.backend.lora import LoadedAdapter, load_adapters
from inference.backend.memory_lock import allow_memory_lock
from inference.backend.params import model_params, start_numa
from inference.backend.plugins import installed_plugins
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import AdapterFacts, InfillTokens, ModelFacts, ReplicaSpec
from inference.protocol.text import PairLayout
from inference.text.cutting import TextCutter


class LlamaModel:
    """A loaded model and its vocabulary. The vocabulary functions are safe from any thread."""

    def __init__(
        self, handle: int, context_length: int, adapters: tuple[LoadedAdapter, ...] = ()
    ) -> None:
        self.handle = handle
        self.adapters = adapters
        self.vocab = llama_cpp.llama_model_get_vocab(handle)
        self.num_vocab = int(llama_cpp.llama_vocab_n_tokens(self.vocab))
        trained = int(llama_cpp.llama_model_n_ctx_train(handle))
        self.context_length = min(context_length, trained) if trained > 0 else context_length
        self._pieces: dict[int, bytes] = {}
        self._texts: dict[int, bytes] = {}
        self._control_tokens = self._read_control_tokens()
        self._cutter = TextCutter(list(self._control_tokens))
        self._eog = frozenset(
            token
            for token in range(self.num_vocab)
            if llama_cpp.llama_vocab_is_eog(self.vocab, token)
        )
        self.eog_tokens: NDArray[np.int32] = np.array(sorted(self._eog), np.int32)
        self.suppressed_tokens = self._read_suppressed_tokens()
        self._facts = ModelFacts()
        self._facts = self._read_facts()
        self.grammars = Grammars(self)

    def facts(self) -> ModelFacts:
        """Tell what the model says of itself."""
        return self._facts

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Turn text into token ids; characters that are no Unicode scalar become U+FFFD."""
        parts = self._cutter.cut(text)
        tokens = self._tokenize(next(parts), add_special, parse_special)
        num_suffix = self._facts.num_suffix_tokens if add_special else 0
        suffix = tokens[len(tokens) - num_suffix :]
        for part in parts:
            del tokens[len(tokens) - num_suffix :]
            tokens += [*self._tokenize_rest(part, parse_special), *suffix]
        return tokens

    def _tokenize_rest(self, part: str, parse_special: bool) -> list[int]:
        """Tokenize a part that goes on after others.

        Some tokenizers put a space before every text. A line break before the part takes it, and
        both are dropped again.
        """
        lead = self._tokenize("\n", False, False)
        tokens = self._tokenize("\n" + part, False, parse_special)
        if tokens[: len(lead)] == lead:
            return tokens[len(lead) :]
        return self._tokenize(part, False, parse_special)

    def _tokenize(self, text: str, add_special: bool, parse_special: bool) -> list[int]:
        data = text.encode("utf-8", "replace")
        size = len(data) + 8
        while True:
            buffer = (ctypes.c_int32 * size)()
            count = llama_cpp.llama_tokenize(
                self.vocab, data, len(data), buffer, size, add_special, parse_special
            )
            if count >= 0:
                return buffer[:count]
            size = -count

    def token_bytes(self, token: int) -> bytes:
        """Give the bytes of a token as written, the names of control tokens included."""
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._read_piece(token, special=True)
        return piece

    def text_bytes(self, token: int) -> bytes:
        """Give the bytes of a token as generated text: nothing for control tokens."""
        text = self._texts.get(token)
        if text is None:
            text = self._texts[token] = self._read_piece(token, special=False)
        return text

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """Turn token ids back into the bytes they were made of."""
        ids = (ctypes.c_int32 * len(tokens))(*tokens)
        size = 16 + 8 * len(tokens)
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = llama_cpp.llama_detokenize(
                self.vocab, ids, len(tokens), buffer, size, False, True
            )
            if count >= 0:
                return buffer.raw[:count]
            size = -count

    def control_tokens(self) -> dict[str, int]:
        """Map the spelling of each control token to its id."""
        return dict(self._control_tokens)

    def is_end_of_generation(self, token: int) -> bool:
        """Tell whether the model ends its answer with this token."""
        return token in self._eog

    def pair_layout(self) -> PairLayout:
        """Tell how a query and a document are joined, as llama-server does."""
        vocab = self.vocab
        template = llama_cpp.llama_model_chat_template(self.handle, b"rerank")
        if template:
            return PairLayout(template=template.decode("utf-8", "replace"))
        start = (int(llama_cpp.llama_vocab_bos(vocab)),)
        separator = (int(llama_cpp.llama_vocab_sep(vocab)),)
        end = (int(llama_cpp.llama_vocab_eos(vocab)),)
        end = end if end[0] >= 0 else separator
        is_ended = llama_cpp.llama_vocab_get_add_eos(vocab)
        is_separated = llama_cpp.llama_vocab_get_add_sep(vocab)
        return PairLayout(
            before=start if llama_cpp.llama_vocab_get_add_bos(vocab) else (),
            between=(*(end if is_ended else ()), *(separator if is_separated else ())),
            after=end if is_ended else (),
        )

    def describe_vectors(self, pooling: str, num_dimensions: int) -> None:
        """Note what vectors are computed from the model, for its facts."""
        self._facts = msgspec.structs.replace(
            self._facts, pooling=pooling, num_dimensions=num_dimensions
        )

    def close(self) -> None:
        """Free the weights; nothing may use the model afterwards."""
        handle, self.handle = self.handle, 0
        if handle:
            llama_cpp.llama_model_free(handle)

    def _read_piece(self, token: int, *, special: bool) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = llama_cpp.llama_token_to_piece(self.vocab, token, buffer, size, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            size = -count

    def _read_control_tokens(self) -> dict[str, int]:
        # The tokenizer parses the spelling of the unknown token as a special one too.
        special = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN
        return {
            self._read_piece(token, special=True).decode("utf-8", "replace"): token
            for token in range(self.num_vocab)
            if llama_cpp.llama_vocab_get_attr(self.vocab, token) & special
        }

    def _read_suppressed_tokens(self) -> NDArray[np.int32]:
        count = ctypes.c_int32()
        tokens = llama_cpp.llama_vocab_get_suppress_tokens(self.vocab, ctypes.byref(count))
        return np.array([tokens[i] for i in range(count.value)], np.int32)

    def _read_facts(self) -> ModelFacts:
        template = llama_cpp.llama_model_chat_template(self.handle, None)
        description = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(self.handle, description, len(description))
        bos = int(llama_cpp.llama_vocab_bos(self.vocab))
        eos = int(llama_cpp.llama_vocab_eos(self.vocab))
        num_prefix, num_suffix = self._count_added_tokens()
        return ModelFacts(
            num_vocab=self.num_vocab,
            context_length=self.context_length,
            num_ctx_train=int(llama_cpp.llama_model_n_ctx_train(self.handle)),
            num_embd=int(llama_cpp.llama_model_n_embd(self.handle)),
            num_params=int(llama_cpp.llama_model_n_params(self.handle)),
            size_bytes=int(llama_cpp.llama_model_size(self.handle)),
            description=description.value.decode("utf-8", "replace"),
            bos_token=self._spell(bos),
            eos_token=self._spell(eos),
            bos_token_id=bos,
            eos_token_id=eos,
            end_tokens=tuple(sorted(self._eog)),
            infill=self._read_infill_tokens(),
            has_chat_template=bool(template),
            chat_template=template.decode("utf-8", "replace") if template else "",
            has_encoder=bool(llama_cpp.llama_model_has_encoder(self.handle)),
            vocab_type=int(llama_cpp.llama_vocab_type(self.vocab)),
            sampler_plugins=tuple(installed_plugins()),
            num_prefix_tokens=num_prefix,
            num_suffix_tokens=num_suffix,
            adapters=tuple(
                AdapterFacts(name=one.spec.name, scale=one.spec.scale) for one in self.adapters
            ),
        )

    def _read_infill_tokens(self) -> InfillTokens:
        return InfillTokens(
            prefix=int(llama_cpp.llama_vocab_fim_pre(self.vocab)),
            suffix=int(llama_cpp.llama_vocab_fim_suf(self.vocab)),
            middle=int(llama_cpp.llama_vocab_fim_mid(self.vocab)),
            repository=int(llama_cpp.llama_vocab_fim_rep(self.vocab)),
            file=int(llama_cpp.llama_vocab_fim_sep(self.vocab)),
        )

    def _count_added_tokens(self) -> tuple[int, int]:
        """Count the special tokens that are put before and after a text."""
        bare = self.tokenize("a", add_special=False, parse_special=False)
        whole = self.tokenize("a", add_special=True, parse_special=False)
        num_added = len(whole) - len(bare)
        num_prefix = next(
            (at for at in range(num_added + 1) if whole[at : at + len(bare)] == bare), num_added
        )
        return num_prefix, num_added - num_prefix

    def _spell(self, token: int) -> str:
        return self.token_bytes(token).decode("utf-8", "replace") if token >= 0 else ""


def load_model(spec: ReplicaSpec, progress: Callable[[float], None]) -> LlamaModel:
    """Load the weights of a replica, telling progress from 0 to 1; raises EngineError."""
    native.initialize()
    params = model_params(spec.profile)
    check_devices(spec.profile, list_native_devices())
    if spec.profile.use_mlock:
        allow_memory_lock(spec.files)
    start_numa(spec.profile)

    def report(fraction: float, _user_data: object) -> bool:
        progress(fraction)
        return True

    callback = llama_cpp.llama_progress_callback(report)
    params.progress_callback = callback
    paths = [path.encode() for path in spec.files]
    if len(paths) == 1:
        handle = llama_cpp.llama_model_load_from_file(paths[0], params)
    else:
        array = (ctypes.c_char_p * len(paths))(*paths)
        handle = llama_cpp.llama_model_load_from_splits(array, len(paths), params)
    if not handle:
        reason = native.last_errors() or "the file is missing or damaged"
        raise EngineError(ErrorCode.ENGINE_FAILED, f"The model could not be loaded: {reason}")
    try:
        adapters = load_adapters(handle, spec.loras)
    except EngineError:
        llama_cpp.llama_model_free(handle)
        raise
    return LlamaModel(handle, spec.profile.sequence_cells, adapters)
