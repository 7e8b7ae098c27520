"""What decides how much memory a model takes: sizes per layer, read from header and tensors.

The tensors tell most of it, whatever the architecture: a layer keeps keys and values if it has a
K projection, and a state if it has the tensors of one. Architectures with caches of their own kind
(DeepSeek's sparse attention and its like) are estimated as if they had none.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from inference.gguf.architectures import ENCODERS
from inference.gguf.checks.hparams import per_layer
from inference.gguf.checks.tensors import tensor_bytes
from inference.gguf.tensor_types import TENSOR_TYPES
from inference.gguf.values import Header, TensorInfo

_BLOCK = re.compile(r"blk\.(\d+)\.(.+)\Z")
_OUTPUT = re.compile(r"output(_norm)?\.|token_embd_norm\.|cls\.|cls_out\.|rope_freqs\.")
_STATE_TENSORS = ("ssm_", "time_mix_", "shortconv.")
# What the CPU of most servers (x86-64 with AVX2) keeps a rearranged copy of.
_REPACKED_TYPES = frozenset({"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"})
_REPACKED_ROWS = 8


class LayerShape(msgspec.Struct, frozen=True, array_like=True):
    """One layer: bytes of weights, and the numbers kept per token (K, V) and per sequence.

    ``repacked_bytes`` of the weights are copied in another order when the layer runs on a CPU.
    ``matrix_bytes`` of them are in matrices, of ``matrix_elements`` numbers.
    """

    weights_bytes: int = 0
    repacked_bytes: int = 0
    k_elements: int = 0
    v_elements: int = 0
    state_elements: int = 0
    matrix_bytes: int = 0
    matrix_elements: int = 0


class MemoryShape(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of a model.

    ``input`` stays on the host; ``output`` goes with the last layers, as a copy of the token table
    where ``is_output_tied``. ``ffn_width`` is the widest intermediate of one token, with all its
    experts, ``attention_width`` the query of one, ``state_width`` that of a recurrent layer.
    ``num_masks`` is 2 where some layers see only a window.
    """

    layers: tuple[LayerShape, ...] = ()
    input: LayerShape = LayerShape()
    output: LayerShape = LayerShape()
    is_output_tied: bool = False
    num_embd: int = 0
    num_vocab: int = 0
    num_merges: int = 0
    ffn_width: int = 0
    num_experts_used: int = 0
    is_gated: bool = False
    num_heads: int = 0
    attention_width: int = 0
    kv_width: int = 0
    state_width: int = 0
    num_masks: int = 1

    @property
    def weights_bytes(self) -> int:
        """The bytes of all tensors, each counted once."""
        return sum(part.weights_bytes for part in (self.input, *self.layers, self.output))


def shape_of(headers: Sequence[Header], num_vocab: int) -> MemoryShape:
    """Measure the checked headers of one model, first shard first."""
    first = headers[0]
    tensors = [tensor for header in headers for tensor in header.tensors]
    num_layers = first.integer(f"{first.architecture}.block_count") or 0
    groups = _group(tensors, num_layers)
    heads = _Heads(first, num_layers)
    layers = tuple(
        _measure_layer(first, heads, groups[number], number) for number in range(num_layers)
    )
    merges = first.metadata.get("tokenizer.ggml.merges")
    names = {tensor.name for tensor in tensors}
    prefix = first.architecture
    return MemoryShape(
        layers=_drop_unused_caches(first, layers),
        input=_weigh(groups["input"], can_repack=False),
        output=_weigh(groups["output"]),
        is_output_tied="output.weight" not in names,
        num_embd=first.integer(f"{prefix}.embedding_length") or 0,
        num_vocab=num_vocab,
        num_merges=merges.count if merges else 0,
        ffn_width=_ffn_width(tensors, first.integer(f"{prefix}.expert_used_count") or 1),
        num_experts_used=first.integer(f"{prefix}.expert_used_count") or 0,
        is_gated=_is_gated(tensors),
        num_heads=heads.most,
        attention_width=heads.most * heads.key_length,
        kv_width=max((max(one.k_elements, one.v_elements) for one in layers), default=0),
        state_width=first.integer(f"{prefix}.ssm.inner_size") or 0,
        num_masks=2 if first.integer(f"{prefix}.attention.sliding_window") else 1,
    )


class _Heads:
    """The attention heads as the metadata give them."""

    def __init__(self, header: Header, num_layers: int) -> None:
        name = header.architecture
        value = header.metadata.get(f"{name}.attention.head_count")
        self.query = per_layer(value, num_layers) if value else (0,) * num_layers
        kv_value = header.metadata.get(f"{name}.attention.head_count_kv")
        self.kv = per_layer(kv_value, num_layers) if kv_value else self.query
        self.most = max(self.query, default=0)
        width = header.integer(f"{name}.embedding_length") or 0
        default = width // self.most if self.most else 0
        self.key_length = header.integer(f"{name}.attention.key_length") or default
        self.value_length = header.integer(f"{name}.attention.value_length") or default
        # Latent attention keeps one compressed row per token, and nothing for the values.
        self.is_latent = f"{name}.attention.key_length_mla" in header.metadata


def _group(tensors: Sequence[TensorInfo], num_layers: int) -> dict[int | str, list[TensorInfo]]:
    groups: dict[int | str, list[TensorInfo]] = {"input": [], "output": []}
    groups |= {number: [] for number in range(num_layers)}
    for tensor in tensors:
        match = _BLOCK.match(tensor.name)
        if match and int(match[1]) < num_layers:
            groups[int(match[1])].append(tensor)
        else:
            groups["output" if _OUTPUT.match(tensor.name) else "input"].append(tensor)
    return groups


def _weigh(tensors: Sequence[TensorInfo], *, can_repack: bool = True) -> LayerShape:
    repacked = [tensor for tensor in tensors if can_repack and _is_repacked(tensor)]
    matrices = [tensor for tensor in tensors if len(tensor.dims) > 1]
    return LayerShape(
        sum(map(tensor_bytes, tensors)),
        sum(map(tensor_bytes, repacked)),
        matrix_bytes=sum(map(tensor_bytes, matrices)),
        matrix_elements=sum(tensor.num_elements for tensor in matrices),
    )


def _is_repacked(tensor: TensorInfo) -> bool:
    return (
        len(tensor.dims) > 1
        and tensor.dims[1] % _REPACKED_ROWS == 0
        and TENSOR_TYPES[tensor.type_id].name in _REPACKED_TYPES
    )


def _measure_layer(
    header: Header, heads: _Heads, tensors: Sequence[TensorInfo], number: int
) -> LayerShape:
    weights = _weigh(tensors)
    rows = {tensor.name.partition(f"blk.{number}.")[2]: tensor.dims for tensor in tensors}
    has_state = any(name.startswith(_STATE_TENSORS) for name in rows)
    k_elements, v_elements = (0, 0)
    if header.architecture not in ENCODERS and _attends(rows, has_state=has_state):
        k_elements, v_elements = _cache_widths(heads, rows, number)
    return msgspec.structs.replace(
        weights,
        k_elements=k_elements,
        v_elements=v_elements,
        state_elements=_state_elements(header) if has_state else 0,
    )


def _attends(rows: Mapping[str, Sequence[int]], *, has_state: bool) -> bool:
    """Tell whether a layer keeps keys; a fused projection beside a state belongs to that."""
    if "attn_k.weight" in rows or "attn_kv_a_mqa.weight" in rows:
        return True
    return "attn_qkv.weight" in rows and not has_state


def _cache_widths(heads: _Heads, rows: Mapping[str, Sequence[int]], number: int) -> tuple[int, int]:
    k_elements = heads.kv[number] * heads.key_length
    v_elements = heads.kv[number] * heads.value_length
    if heads.is_latent:
        return k_elements, 0
    if "attn_kv_a_mqa.weight" in rows:  # expanded: a key and a value for each query head
        return heads.query[number] * heads.key_length, heads.query[number] * heads.value_length
    # The projections know of layers with heads of another size.
    if len(projection := rows.get("attn_k.weight", ())) > 1:
        k_elements = v_elements = projection[1]
    if len(projection := rows.get("attn_v.weight", ())) > 1:
        v_elements = projection[1]
    return k_elements, v_elements


def _state_elements(header: Header) -> int:
    """Count the numbers of a recurrent layer's state, per sequence."""
    name = header.architecture

    def read(key: str) -> int:
        return header.integer(f"{name}.{key}") or 0

    width = read("embedding_length")
    if head := read("wkv.head_size"):
        return (read("token_shift_count") or 2) * width + width * head
    if taps := read("shortconv.l_cache"):
        return width * (taps - 1)
    inner, state = read("ssm.inner_size"), read("ssm.state_size")
    taps = max(read("ssm.conv_kernel") - 1, 0)
    return taps * (inner + 2 * read("ssm.group_count") * state) + state * inner


def _drop_unused_caches(header: Header, layers: tuple[LayerShape, ...]) -> tuple[LayerShape, ...]:
    """Take away the caches of layers that borrow another's, and of those that only guess ahead."""
    name = header.architecture
    num_borrowing = header.integer(f"{name}.attention.shared_kv_layers") or 0
    num_guessing = header.integer(f"{name}.nextn_predict_layers") or 0
    num_kept = len(layers) - max(num_borrowing, num_guessing)
    return tuple(
        layer
        if number < num_kept
        else msgspec.structs.replace(layer, k_elements=0, v_elements=0, state_elements=0)
        for number, layer in enumerate(layers)
    )


def _ffn_width(tensors: Sequence[TensorInfo], num_experts_used: int) -> int:
    """Give the widest feed-forward intermediate of one token, from the rows of its projections."""
    widest = 0
    for tensor in tensors:
        name = tensor.name.rpartition("ffn_down")[2]
        if name in (".weight", "_shexp.weight") and len(tensor.dims) > 1:
            widest = max(widest, tensor.dims[0])
        elif name == "_exps.weight":
            widest = max(widest, tensor.dims[0] * num_experts_used)
    return widest


def _is_gated(tensors: Sequence[TensorInfo]) -> bool:
    """Tell whether the feed-forward part has a gate: of its own, or within twice as many rows."""
    outputs = {tensor.name: tensor.dims for tensor in tensors if ".ffn_" in tensor.name}
    for name, dims in outputs.items():
        if ".ffn_gate" in name:
            return True
        down = outputs.get(name.replace(".ffn_up", ".ffn_down"))
        if ".ffn_up." in name and len(dims) > 1 and down and dims[1] >= 2 * down[0]:
            return True
    return False
