"""The probe: a process that loads checked files with llama.cpp and decodes one token.

Run by inference.gguf.child with the descriptors as arguments, and ``with-adapter`` behind them if
the last one is an adapter; never imported elsewhere, because a hostile file may kill it.
"""

import ctypes
import math
import os
import sys

import llama_cpp

from inference.gguf.child import WITH_ADAPTER, Verdict, answer
from inference.gguf.limits import GIB, die_with_parent, limit_process
from inference.gguf.verdict import GgufRejected

NUM_CTX = 64
NUM_THREADS = 2
CPU_SECONDS = 240
# Byte fallback, joined emoji, controls, a marker spelled out: what tokenizers stumble on.
TEXTS = (
    "",
    "Hello, world.",
    "é e\u0301 \u4e2d\u6587 \U0001f469\u200d\U0001f680",
    "\x00\x01\x7f\ufffd",
    "<|im_start|>",
)
# ggml's number for a line about an error, which the bindings do not name.
_ERROR = 4
_errors: list[str] = []


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _keep_errors(level: int, text: bytes, _user_data: ctypes.c_void_p) -> None:
    if level == _ERROR and len(_errors) < 8:
        line = text.decode(errors="replace").strip()
        # Before the first colon stands the name of a function of llama.cpp's.
        words = line.partition(": ")[2] or line
        _errors.append("".join(one if one.isprintable() else "?" for one in words[:300]))


def main(arguments: list[str]) -> int:
    """Probe the descriptors named by the arguments; give the exit status."""
    die_with_parent()
    has_adapter = arguments[-1] == WITH_ADAPTER
    descriptors = [int(argument) for argument in arguments if argument != WITH_ADAPTER]
    size_bytes = sum(os.fstat(fd).st_size for fd in descriptors)
    # Weights may be there twice: mapped, and repacked for this CPU. GPU builds map far more.
    space = None if llama_cpp.llama_supports_gpu_offload() else 2 * size_bytes + 2 * GIB
    limit_process(address_space_bytes=space, cpu_seconds=CPU_SECONDS, max_open_files=2048)
    llama_cpp.llama_log_set(_keep_errors, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    paths = [f"/dev/fd/{fd}" for fd in descriptors]
    try:
        _probe(paths[:-1], paths[-1]) if has_adapter else _probe(paths, None)
    except GgufRejected as error:
        return answer(Verdict(verdict="rejected", code=error.code, reason=error.reason))
    return answer(Verdict(verdict="ok"))


def _probe(paths: list[str], adapter: str | None) -> None:
    parameters = llama_cpp.llama_model_default_params()
    parameters.n_gpu_layers = 0
    parameters.use_mmap = True
    encoded = [path.encode() for path in paths]
    if len(encoded) == 1:
        model = llama_cpp.llama_model_load_from_file(encoded[0], parameters)
    else:
        names = (ctypes.c_char_p * len(encoded))(*encoded)
        model = llama_cpp.llama_model_load_from_splits(names, len(encoded), parameters)
    if not model:
        raise _failed("llama.cpp refuses to load it")
    vocab = llama_cpp.llama_model_get_vocab(model)
    for text in TEXTS:
        _tokenize(vocab, text.encode())
    # Before any context: contexts are made with room for what adapters add.
    loaded = _load_adapter(model, adapter) if adapter else None
    context = _make_context(model)
    if loaded is not None:
        _apply_adapter(context, loaded)
    _decode_one(model, vocab, context)


def _failed(what: str) -> GgufRejected:
    detail = "; ".join(_errors)
    return GgufRejected("probe_failed", f"{what}: {detail}" if detail else f"{what}.")


def _tokenize(vocab: object, text: bytes) -> list[int]:
    room = len(text) + 16
    tokens = (llama_cpp.llama_token * room)()
    count = llama_cpp.llama_tokenize(vocab, text, len(text), tokens, room, True, True)
    if count < 0:
        raise _failed("the tokenizer gives more tokens than bytes")
    return list(tokens[:count])


def _load_adapter(model: object, path: str) -> object:
    adapter = llama_cpp.llama_adapter_lora_init(model, path.encode())
    if not adapter:
        raise _failed("llama.cpp refuses to load the adapter beside its model")
    return adapter


def _apply_adapter(context: object, adapter: object) -> None:
    handles = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter)
    if llama_cpp.llama_set_adapters_lora(context, handles, 1, (ctypes.c_float * 1)(1.0)):
        raise _failed("the adapter does not fit the model")


def _make_context(model: object) -> object:
    parameters = llama_cpp.llama_context_default_params()
    parameters.n_ctx = NUM_CTX
    parameters.n_batch = NUM_CTX
    parameters.n_ubatch = NUM_CTX
    parameters.n_threads = NUM_THREADS
    parameters.n_threads_batch = NUM_THREADS
    parameters.embeddings = False
    context = llama_cpp.llama_init_from_model(model, parameters)
    if not context:
        raise _failed("no context can be made")
    return context


def _decode_one(model: object, vocab: object, context: object) -> None:
    """Compute one token and look at what comes out: logits, or the pooled or token vector."""
    tokens = _tokenize(vocab, b"a")[:NUM_CTX] or [0]
    is_encoder = llama_cpp.llama_model_has_encoder(model)
    is_pooled = llama_cpp.llama_pooling_type(context) != llama_cpp.LLAMA_POOLING_TYPE_NONE
    if is_pooled or (is_encoder and not llama_cpp.llama_model_has_decoder(model)):
        llama_cpp.llama_set_embeddings(context, True)
    array = (llama_cpp.llama_token * len(tokens))(*tokens)
    batch = llama_cpp.llama_batch_get_one(array, len(tokens))
    run = llama_cpp.llama_encode if is_encoder else llama_cpp.llama_decode
    if run(context, batch) != 0:
        raise _failed("it cannot decode one token")
    if is_pooled:
        numbers = llama_cpp.llama_get_embeddings_seq(context, 0)
        count = llama_cpp.llama_model_n_embd(model)
        if llama_cpp.llama_pooling_type(context) == llama_cpp.LLAMA_POOLING_TYPE_RANK:
            count = 1
    elif is_encoder:
        return
    else:
        numbers = llama_cpp.llama_get_logits_ith(context, -1)
        count = llama_cpp.llama_vocab_n_tokens(vocab)
    if not numbers or not all(math.isfinite(number) for number in numbers[:count]):
        raise _failed("its output is not finite")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
