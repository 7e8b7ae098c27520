"""Make a BERT that is small and random, and compute it in numpy beside llama.cpp."""

from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

NUM_LAYERS = 2
NUM_EMBD = 32
NUM_FF = 64
NUM_HEADS = 4
CONTEXT_LENGTH = 128
EPSILON = 1e-5
CONTROL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(5)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,?!"
VOCABULARY = (*CONTROL, *(f"\u2581{letter}" for letter in _LETTERS), *_LETTERS)

Tensors = dict[str, NDArray[np.float32]]


def write_tiny_bert(path: Path, *, is_reranker: bool = True, seed: int = 0) -> Tensors:
    """Write the model and give its tensors; a reranker has a head that gives one score."""
    writer = gguf.GGUFWriter(path, "bert")
    _add_shape(writer, is_reranker=is_reranker)
    _add_vocabulary(writer)
    tensors = _draw_tensors(np.random.default_rng(seed), is_reranker=is_reranker)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def compute_score(tensors: Tensors, tokens: tuple[int, ...]) -> float:
    """Score a joined pair as the model's makers would."""
    first = compute_rows(tensors, tokens)[0]
    hidden = np.tanh(_apply(tensors, "cls", first[np.newaxis]))
    return float(_apply(tensors, "cls.output", hidden)[0, 0])


def compute_rows(tensors: Tensors, tokens: tuple[int, ...]) -> NDArray[np.float32]:
    """Give the row of each token after the last layer."""
    rows = tensors["token_embd.weight"][list(tokens)] + tensors["token_types.weight"][0]
    rows = rows + tensors["position_embd.weight"][: len(tokens)]
    rows = _normalize(tensors, "token_embd_norm", rows)
    for layer in range(NUM_LAYERS):
        block = f"blk.{layer}"
        mixed = _apply(tensors, f"{block}.attn_output", _attend(tensors, block, rows))
        rows = _normalize(tensors, f"{block}.attn_output_norm", rows + mixed)
        wide = _apply(tensors, f"{block}.ffn_up", rows)
        wide = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
        fed = _apply(tensors, f"{block}.ffn_down", wide)
        rows = _normalize(tensors, f"{block}.layer_output_norm", rows + fed)
    return rows


def _attend(tensors: Tensors, block: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    def split(name: str) -> NDArray[np.float32]:
        columns = _apply(tensors, f"{block}.{name}", rows)
        return columns.reshape(len(rows), NUM_HEADS, -1).swapaxes(0, 1)

    queries, keys, values = map(split, ("attn_q", "attn_k", "attn_v"))
    scores = queries @ keys.swapaxes(1, 2) / np.sqrt(NUM_EMBD // NUM_HEADS)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed: NDArray[np.float32] = (weights @ values).swapaxes(0, 1).reshape(len(rows), NUM_EMBD)
    return mixed


def _apply(tensors: Tensors, name: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return rows @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def _normalize(tensors: Tensors, name: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    centred = rows - rows.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(centred.var(axis=-1, keepdims=True) + EPSILON)
    moved: NDArray[np.float32] = scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]
    return moved


def _add_shape(writer: gguf.GGUFWriter, *, is_reranker: bool) -> None:
    writer.add_type("model")
    writer.add_name("tiny-random-bert")
    writer.add_license("0BSD")
    writer.add_file_type(0)
    writer.add_block_count(NUM_LAYERS)
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(NUM_EMBD)
    writer.add_feed_forward_length(NUM_FF)
    writer.add_head_count(NUM_HEADS)
    writer.add_layer_norm_eps(EPSILON)
    writer.add_causal_attention(False)
    writer.add_token_type_count(2)
    writer.add_pooling_type(gguf.PoolingType.RANK if is_reranker else gguf.PoolingType.CLS)


def _add_vocabulary(writer: gguf.GGUFWriter) -> None:
    kind = gguf.TokenType
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("jina-v2-en")
    writer.add_token_list(list(VOCABULARY))
    writer.add_token_types(
        [kind.CONTROL] * len(CONTROL) + [kind.NORMAL] * (len(VOCABULARY) - len(CONTROL))
    )
    writer.add_pad_token_id(PAD)
    writer.add_unk_token_id(UNK)
    writer.add_bos_token_id(CLS)
    writer.add_eos_token_id(SEP)
    writer.add_sep_token_id(SEP)
    writer.add_mask_token_id(MASK)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_add_sep_token(False)


def _draw_tensors(random: np.random.Generator, *, is_reranker: bool) -> Tensors:
    tensors: Tensors = {}

    def draw(name: str, *shape: int) -> None:
        tensors[name] = (random.standard_normal(shape) * 0.3).astype(np.float32)

    def draw_linear(name: str, rows: int, columns: int) -> None:
        draw(f"{name}.weight", rows, columns)
        draw(f"{name}.bias", rows)

    def draw_norm(name: str) -> None:
        draw(f"{name}.bias", NUM_EMBD)
        tensors[f"{name}.weight"] = np.ones(NUM_EMBD, np.float32)

    draw("token_embd.weight", len(VOCABULARY), NUM_EMBD)
    draw("token_types.weight", 2, NUM_EMBD)
    draw("position_embd.weight", CONTEXT_LENGTH, NUM_EMBD)
    draw_norm("token_embd_norm")
    for layer in range(NUM_LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            draw_linear(f"blk.{layer}.{name}", NUM_EMBD, NUM_EMBD)
        draw_norm(f"blk.{layer}.attn_output_norm")
        draw_linear(f"blk.{layer}.ffn_up", NUM_FF, NUM_EMBD)
        draw_linear(f"blk.{layer}.ffn_down", NUM_EMBD, NUM_FF)
        draw_norm(f"blk.{layer}.layer_output_norm")
    if is_reranker:
        draw_linear("cls", NUM_EMBD, NUM_EMBD)
        draw_linear("cls.output", 1, NUM_EMBD)
    return tensors
