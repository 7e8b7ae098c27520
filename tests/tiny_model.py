"""Make a llama model that is small and random, but loads and runs like a real one."""

from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np

NUM_LAYERS = 2
NUM_EMBD = 64
NUM_FF = 128
NUM_HEADS = 4
NUM_KV_HEADS = 2
CONTEXT_LENGTH = 512
LETTERS = range(33, 127)
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def write_tiny_model(
    path: Path,
    *,
    seed: int = 0,
    letters: Sequence[int] = LETTERS,
    byte_values: Sequence[int] = range(256),
    controls: Sequence[str] = (),
) -> None:
    """Write the model. Its tokens are bytes, so it often stops within a character.

    ``controls`` are spellings of further control tokens, which come last.
    """
    writer = gguf.GGUFWriter(path, "llama")
    num_vocab = add_vocabulary(writer, letters, byte_values, controls)
    add_shape(writer)
    add_weights(writer, num_vocab, np.random.default_rng(seed))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_vocabulary(
    writer: gguf.GGUFWriter,
    letters: Sequence[int],
    byte_values: Sequence[int] = range(256),
    controls: Sequence[str] = (),
) -> int:
    """Add control tokens, all bytes, a space, some letters, and ``controls``; give their number."""
    control = [b"<unk>", b"<s>", b"</s>"]
    in_bytes = [f"<0x{value:02X}>".encode() for value in byte_values]
    pieces = ["\u2581".encode(), *(bytes([value]) for value in letters)]
    kind = gguf.TokenType
    types = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL]
    types += [kind.BYTE] * len(in_bytes) + [kind.NORMAL] * len(pieces)
    types += [kind.CONTROL] * len(controls)
    tokens = control + in_bytes + pieces + [name.encode() for name in controls]
    scores = [0.0] * (len(control) + len(in_bytes)) + [-float(i) for i in range(len(pieces))]
    scores += [0.0] * len(controls)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_vocab_size(len(tokens))
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    return len(tokens)


def add_shape(writer: gguf.GGUFWriter) -> None:
    """Add what the loader must know of the layers."""
    writer.add_type("model")
    writer.add_name("tiny-random-llama")
    writer.add_license("0BSD")
    writer.add_file_type(0)
    writer.add_block_count(NUM_LAYERS)
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(NUM_EMBD)
    writer.add_feed_forward_length(NUM_FF)
    writer.add_head_count(NUM_HEADS)
    writer.add_head_count_kv(NUM_KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(NUM_EMBD // NUM_HEADS)


def add_weights(writer: gguf.GGUFWriter, num_vocab: int, random: np.random.Generator) -> None:
    """Add random matrices, and norms that change nothing."""

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * 0.3).astype(np.float32)

    ones = np.ones(NUM_EMBD, np.float32)
    num_kv = NUM_EMBD // NUM_HEADS * NUM_KV_HEADS
    writer.add_tensor("token_embd.weight", matrix(num_vocab, NUM_EMBD))
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", matrix(num_vocab, NUM_EMBD))
    for layer in range(NUM_LAYERS):
        tensors = {
            "attn_norm": ones,
            "attn_q": matrix(NUM_EMBD, NUM_EMBD),
            "attn_k": matrix(num_kv, NUM_EMBD),
            "attn_v": matrix(num_kv, NUM_EMBD),
            "attn_output": matrix(NUM_EMBD, NUM_EMBD),
            "ffn_norm": ones,
            "ffn_gate": matrix(NUM_FF, NUM_EMBD),
            "ffn_up": matrix(NUM_FF, NUM_EMBD),
            "ffn_down": matrix(NUM_EMBD, NUM_FF),
        }
        for name, tensor in tensors.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", tensor)
