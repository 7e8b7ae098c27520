"""The memory estimate adds up."""

from inference.gguf.memory import estimate_memory


def test_weights_and_cells_of_all_slots() -> None:
    estimate = estimate_memory(
        weights_bytes=1000, k_elements=64, v_elements=64, context_length=10, num_slots=3
    )
    assert estimate.kv_bytes_per_slot == 2 * (64 + 64) * 10
    assert estimate.total_bytes == 1000 + 3 * 2560


def test_quantized_cells_are_smaller() -> None:
    estimate = estimate_memory(
        weights_bytes=0,
        k_elements=64,
        v_elements=64,
        context_length=1,
        num_slots=1,
        cache_type_k="q8_0",
        cache_type_v="q4_0",
    )
    assert estimate.total_bytes == 68 + 36
