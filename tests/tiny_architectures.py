"""Make small random models whose memory is not plain attention: a sliding window, a recurrence."""

from pathlib import Path

import gguf
import numpy as np

from tests.tiny_model import CONTEXT_LENGTH, LETTERS, NUM_EMBD, NUM_FF, add_vocabulary

WINDOW = 32
NUM_LAYERS = 2
_NUM_HEADS, _NUM_KV_HEADS, _HEAD = 4, 2, 16
_INNER, _STATE, _RANK, _KERNEL = 2 * NUM_EMBD, 8, 4, 4

Tensors = dict[str, np.ndarray]


def write_windowed_model(path: Path) -> None:
    """Write a model of two layers: one sees the last ``WINDOW`` tokens, one sees all."""
    writer = gguf.GGUFWriter(path, "gemma2")
    num_vocab = _add_shape(writer)
    writer.add_feed_forward_length(NUM_FF)
    writer.add_head_count(_NUM_HEADS)
    writer.add_head_count_kv(_NUM_KV_HEADS)
    writer.add_key_length(_HEAD)
    writer.add_value_length(_HEAD)
    writer.add_sliding_window(WINDOW)
    draw = _Draw(0)
    tensors = _ends(draw, num_vocab)
    for layer in range(NUM_LAYERS):
        tensors |= _name(layer, _windowed_layer(draw))
    _write(writer, tensors)


def write_recurrent_model(path: Path) -> None:
    """Write a model that keeps one state per sequence, and nothing of each token."""
    writer = gguf.GGUFWriter(path, "mamba")
    num_vocab = _add_shape(writer)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(_KERNEL)
    writer.add_ssm_inner_size(_INNER)
    writer.add_ssm_state_size(_STATE)
    writer.add_ssm_time_step_rank(_RANK)
    draw = _Draw(0)
    tensors = _ends(draw, num_vocab)
    for layer in range(NUM_LAYERS):
        tensors |= _name(layer, _recurrent_layer(draw))
    _write(writer, tensors)


class _Draw:
    """Random matrices, the same in each run."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def matrix(self, *shape: int, scale: float = 0.3) -> np.ndarray:
        """Draw a matrix, or a vector."""
        return (self._random.standard_normal(shape) * scale).astype(np.float32)


def _ones(size: int) -> np.ndarray:
    return np.ones(size, np.float32)


def _add_shape(writer: gguf.GGUFWriter) -> int:
    num_vocab = add_vocabulary(writer, LETTERS)
    writer.add_type("model")
    writer.add_name("tiny-random")
    writer.add_file_type(0)
    writer.add_block_count(NUM_LAYERS)
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(NUM_EMBD)
    writer.add_layer_norm_rms_eps(1e-5)
    return num_vocab


def _ends(draw: _Draw, num_vocab: int) -> Tensors:
    return {
        "token_embd.weight": draw.matrix(num_vocab, NUM_EMBD),
        "output_norm.weight": _ones(NUM_EMBD),
    }


def _windowed_layer(draw: _Draw) -> Tensors:
    num_q, num_kv = _NUM_HEADS * _HEAD, _NUM_KV_HEADS * _HEAD
    return {
        "attn_norm.weight": _ones(NUM_EMBD),
        "attn_q.weight": draw.matrix(num_q, NUM_EMBD),
        "attn_k.weight": draw.matrix(num_kv, NUM_EMBD),
        "attn_v.weight": draw.matrix(num_kv, NUM_EMBD),
        "attn_output.weight": draw.matrix(NUM_EMBD, num_q),
        "post_attention_norm.weight": _ones(NUM_EMBD),
        "ffn_norm.weight": _ones(NUM_EMBD),
        "ffn_gate.weight": draw.matrix(NUM_FF, NUM_EMBD),
        "ffn_up.weight": draw.matrix(NUM_FF, NUM_EMBD),
        "ffn_down.weight": draw.matrix(NUM_EMBD, NUM_FF),
        "post_ffw_norm.weight": _ones(NUM_EMBD),
    }


def _recurrent_layer(draw: _Draw) -> Tensors:
    return {
        "attn_norm.weight": _ones(NUM_EMBD),
        "ssm_in.weight": draw.matrix(2 * _INNER, NUM_EMBD),
        "ssm_conv1d.weight": draw.matrix(_INNER, _KERNEL),
        "ssm_conv1d.bias": draw.matrix(_INNER),
        "ssm_x.weight": draw.matrix(_RANK + 2 * _STATE, _INNER),
        "ssm_dt.weight": draw.matrix(_INNER, _RANK),
        "ssm_dt.bias": draw.matrix(_INNER),
        # A state that fades slowly, so that early tokens still tell much later.
        "ssm_a": -np.abs(draw.matrix(_INNER, _STATE, scale=0.02)),
        "ssm_d": draw.matrix(_INNER),
        "ssm_out.weight": draw.matrix(NUM_EMBD, _INNER),
    }


def _name(layer: int, tensors: Tensors) -> Tensors:
    return {f"blk.{layer}.{name}": tensor for name, tensor in tensors.items()}


def _write(writer: gguf.GGUFWriter, tensors: Tensors) -> None:
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
