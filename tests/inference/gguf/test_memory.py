"""The memory estimate adds up, for one process and over made-up GPUs."""

import msgspec
import pytest

from inference.gguf.context_use import embedding, encoding, generating
from inference.gguf.memory import (
    DRIVER_BYTES,
    PROCESS_BYTES,
    TOKEN_BYTES,
    Load,
    MemoryEstimate,
    estimate_memory,
)
from inference.gguf.offload import HOST, assign_layers
from inference.gguf.shape import LayerShape, MemoryShape
from inference.protocol.nodes import Device
from inference.protocol.replicas import RuntimeProfile

LAYER = LayerShape(weights_bytes=1000, repacked_bytes=100, k_elements=64, v_elements=32)
SHAPE = MemoryShape(
    layers=(LAYER,) * 4,
    input=LayerShape(weights_bytes=300),
    output=LayerShape(weights_bytes=50),
    is_output_tied=True,
    num_embd=64,
    num_vocab=1000,
    ffn_width=128,
    num_heads=4,
    attention_width=64,
    kv_width=64,
    is_gated=True,
)
PROFILE = RuntimeProfile(context_length=512, num_slots=2, prefix_host_bytes=0)
GPUS = tuple(
    Device(kind="gpu", name=f"CUDA{number}", total_bytes=size, free_bytes=size)
    for number, size in enumerate((3 << 30, 1 << 30))
)


def estimate(
    shape: MemoryShape = SHAPE, gpus: tuple[Device, ...] = (), **settings: object
) -> MemoryEstimate:
    """Estimate a replica of the profile, with changes."""
    profile = msgspec.structs.replace(PROFILE, **settings)
    load = Load(shape=shape, context_length=profile.context_length)
    return estimate_memory(load, profile, gpus)


def test_the_parts_of_a_replica_add_up() -> None:
    host = estimate().host
    assert host.mapped_bytes == 4 * 1000 + 300 + 50
    assert host.weights_bytes == 4 * 100
    assert host.cache_bytes == 4 * 2 * (64 + 32) * 512 * 2
    rows = 4 * PROFILE.num_slots * 1000
    assert host.other_bytes == PROCESS_BYTES + 1000 * TOKEN_BYTES + rows
    assert host.full_bytes == host.idle_bytes + host.cache_bytes + host.compute_bytes


def test_a_file_that_is_not_mapped_is_held_once() -> None:
    host = estimate(use_mmap=False).host
    assert (host.weights_bytes, host.mapped_bytes) == (4350, 0)


def test_cold_prefixes_count_at_most_but_not_when_idle() -> None:
    with_prefixes, without = estimate(prefix_host_bytes=1 << 20), estimate()
    assert with_prefixes.idle_bytes == without.idle_bytes
    assert with_prefixes.full_bytes == without.full_bytes
    assert with_prefixes.most_bytes == without.most_bytes + (1 << 20)


def test_rows_of_logits_for_all_prompt_tokens_count_at_most() -> None:
    plain, guessing = estimate(), estimate(speculation="ngram")
    rows = PROFILE.max_step_rows
    assert plain.host.spare_bytes >= 4 * (rows - PROFILE.num_slots) * SHAPE.num_vocab
    assert guessing.host.spare_bytes == 0
    assert guessing.most_bytes == plain.most_bytes


def test_quantized_cells_are_smaller() -> None:
    cache = estimate(cache_type_k="q8_0", cache_type_v="q4_0").host.cache_bytes
    assert cache == 4 * 1024 * (68 + 18)


def test_contexts_are_cut_into_whole_blocks() -> None:
    assert generating(SHAPE, PROFILE, 300).num_cells == 2 * 512
    unified = msgspec.structs.replace(PROFILE, is_kv_unified=True, kv_cells=700)
    assert generating(SHAPE, unified, 300).num_cells == 768


def test_attention_tables_cost_memory_without_flash_attention() -> None:
    flash = estimate(context_length=8192)
    plain = estimate(context_length=8192, flash_attention="off")
    table = 8192 * 256 * 4 * SHAPE.num_heads
    assert plain.host.compute_bytes > flash.host.compute_bytes + table // 2


def test_a_draft_model_and_adapters_come_on_top() -> None:
    small = Load(shape=SHAPE, context_length=512)
    alone = estimate()
    both = estimate_memory(
        Load(shape=SHAPE, context_length=512, draft=small, adapter_bytes=77), PROFILE
    )
    assert both.host.mapped_bytes == 2 * alone.host.mapped_bytes
    assert both.host.cache_bytes == 2 * alone.host.cache_bytes
    vocabulary = alone.host.other_bytes - PROCESS_BYTES
    assert both.host.other_bytes == PROCESS_BYTES + 2 * vocabulary + 77


def test_a_second_context_computes_vectors() -> None:
    plain, both = estimate(), estimate(serves_embeddings=True)
    use = embedding(SHAPE, PROFILE, 512)
    assert both.host.cache_bytes - plain.host.cache_bytes == 4 * 2 * 96 * use.num_cells
    assert use.num_cells == 768


def test_an_encoder_keeps_no_cells() -> None:
    layers = tuple(msgspec.structs.replace(LAYER, k_elements=0, v_elements=0) for _ in range(4))
    shape = msgspec.structs.replace(SHAPE, layers=layers)
    load = Load(shape=shape, context_length=500, is_generative=False)
    assert estimate_memory(load, PROFILE).host.cache_bytes == 0
    assert encoding(shape, PROFILE, 500).num_tokens == 512


def test_recurrent_layers_keep_a_state_per_slot() -> None:
    layers = (LayerShape(weights_bytes=10, state_elements=500),) * 2
    shape = msgspec.structs.replace(SHAPE, layers=layers, num_heads=0)
    assert estimate(shape).host.cache_bytes == 2 * 500 * 4 * 2


def test_layers_go_to_gpus_by_free_memory_and_the_table_stays() -> None:
    assignment = assign_layers(SHAPE, PROFILE, GPUS)
    assert [place for place, _ in assignment.parts] == [HOST, 0, 0, 0, 0, 1]
    found = estimate(gpus=GPUS)
    assert [device.device for device in found.devices] == [HOST, 0, 1]
    host, first, second = found.devices
    assert host.mapped_bytes == 300
    assert first.weights_bytes == 4000
    assert second.weights_bytes == 50 + 300  # the output is a copy of the tied table
    assert first.cache_bytes == 4 * 2 * 96 * 1024
    assert first.other_bytes == DRIVER_BYTES
    assert first.idle_bytes == first.most_bytes


@pytest.mark.parametrize(
    ("settings", "places"),
    [
        ({"num_gpu_layers": 0}, [HOST] * 6),
        ({"num_gpu_layers": 2}, [HOST, HOST, HOST, HOST, 0, 0]),
        ({"tensor_split": (1.0, 1.0)}, [HOST, 0, 0, 0, 1, 1]),
        ({"tensor_split": (0.0, 1.0)}, [HOST, 1, 1, 1, 1, 1]),
        ({"split_mode": "none", "main_gpu": 1}, [HOST, 1, 1, 1, 1, 1]),
        ({"num_gpu_layers": 99}, [HOST, 0, 0, 0, 0, 1]),
    ],
)
def test_the_profile_decides_where_layers_go(
    settings: dict[str, object], places: list[int]
) -> None:
    profile = msgspec.structs.replace(PROFILE, **settings)
    assert [place for place, _ in assign_layers(SHAPE, profile, GPUS).parts] == places


def test_without_a_gpu_all_is_on_the_host() -> None:
    assert len(estimate(tensor_split=(1.0,), main_gpu=3).devices) == 1
