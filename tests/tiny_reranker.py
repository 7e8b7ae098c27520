"""Make a causal reranker that is small and random: a template, and a head for yes and no."""

from pathlib import Path

import gguf
import numpy as np

from tests.tiny_model import (
    LETTERS,
    NUM_EMBD,
    NUM_HEADS,
    NUM_LAYERS,
    add_shape,
    add_vocabulary,
    add_weights,
)

TEMPLATE = "<s>Does it answer {query}?\n{document}</s>"


def write_tiny_reranker(path: Path, *, seed: int = 0) -> None:
    """Write the model; its score is the probability of yes."""
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "qwen3")
    num_vocab = add_vocabulary(writer, LETTERS)
    add_shape(writer)
    writer.add_pooling_type(gguf.PoolingType.RANK)
    writer.add_classifier_output_labels(["yes", "no"])
    writer.add_string("tokenizer.chat_template.rerank", TEMPLATE)
    add_weights(writer, num_vocab, random)
    head_norm = np.ones(NUM_EMBD // NUM_HEADS, np.float32)
    for layer in range(NUM_LAYERS):
        writer.add_tensor(f"blk.{layer}.attn_q_norm.weight", head_norm)
        writer.add_tensor(f"blk.{layer}.attn_k_norm.weight", head_norm)
    head = random.standard_normal((2, NUM_EMBD)) * 0.3
    writer.add_tensor("cls.output.weight", head.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
