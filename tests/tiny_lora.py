"""Make LoRA adapters with random weights, for the tiny model or another of its architecture."""

from pathlib import Path

import gguf
import numpy as np

from tests.tiny_model import NUM_EMBD, NUM_LAYERS

_RANK = 4


def write_lora(
    path: Path,
    *,
    seed: int,
    num_layers: int = NUM_LAYERS,
    num_embd: int = NUM_EMBD,
    strength: float = 0.3,
    architecture: str = "llama",
    invocation_tokens: tuple[int, ...] = (),
) -> None:
    """Write an adapter of the query and output matrices of each layer's attention.

    With ``invocation_tokens`` it is one that shall act only behind those.
    """
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * strength).astype(np.float32)

    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(_RANK))
    if invocation_tokens:
        key = "adapter.alora.invocation_tokens"
        writer.add_key_value(
            key, list(invocation_tokens), gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT32
        )
    for layer in range(num_layers):
        for name in ("attn_q", "attn_output"):
            weight = f"blk.{layer}.{name}.weight"
            writer.add_tensor(f"{weight}.lora_a", matrix(_RANK, num_embd))
            writer.add_tensor(f"{weight}.lora_b", matrix(num_embd, _RANK))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
