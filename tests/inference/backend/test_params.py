"""Every device setting of a profile reaches llama.cpp, or is refused before it can fail there."""

import resource
from pathlib import Path
from typing import Any

import llama_cpp
import msgspec
import pytest

from inference.backend import memory_lock
from inference.backend.devices import check_devices
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from inference.backend.params import base_params, generation_params, model_params, start_numa
from inference.protocol.errors import EngineError
from inference.protocol.nodes import Device
from inference.protocol.replicas import RuntimeProfile
from tests.inference.backend.jobs import make_spec

GPU = Device(kind="gpu", name="CUDA0", total_bytes=1 << 30)
PROFILE = RuntimeProfile(num_slots=2, context_length=256, num_threads=1)


def status_of_this_process(name: str) -> int:
    """Read a number of kilobytes from the kernel."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def test_threads_are_those_of_the_context(model: LlamaModel) -> None:
    profile = msgspec.structs.replace(PROFILE, num_threads=3, num_threads_batch=5)
    backend = LlamaBackend(model, profile)
    context = backend._context
    assert llama_cpp.llama_n_threads(context) == 3
    assert llama_cpp.llama_n_threads_batch(context) == 5
    backend.close()
    both = msgspec.structs.replace(PROFILE, num_threads=3)
    assert base_params(both).n_threads_batch == 3


def test_cells_and_slots_are_those_of_the_context(model: LlamaModel) -> None:
    profile = msgspec.structs.replace(PROFILE, is_kv_unified=True, kv_cells=300)
    backend = LlamaBackend(model, profile)
    assert llama_cpp.llama_n_ctx(backend._context) == 512  # whole blocks of 256
    assert llama_cpp.llama_n_seq_max(backend._context) == 2
    backend.close()
    assert generation_params(256, PROFILE).n_ctx == 512


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("auto", llama_cpp.LLAMA_FLASH_ATTN_TYPE_AUTO),
        ("on", llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED),
        ("off", llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED),
    ],
)
def test_flash_attention_is_a_choice(name: str, native: int) -> None:
    profile = msgspec.structs.replace(PROFILE, flash_attention=name)
    assert base_params(profile).flash_attn_type == native


def test_offload_and_split_are_passed_on() -> None:
    profile = msgspec.structs.replace(
        PROFILE, num_gpu_layers=7, split_mode="row", main_gpu=1, tensor_split=(3.0, 1.0)
    )
    native = model_params(profile)
    assert (native.n_gpu_layers, native.split_mode, native.main_gpu) == (7, 2, 1)
    size = llama_cpp.llama_max_devices()
    assert native.tensor_split[:size] == [3.0, 1.0, *[0.0] * (size - 2)]


@pytest.mark.parametrize(
    "changes",
    [
        {"split_mode": "tensor"},
        {"flash_attention": "maybe"},
        {"cache_type_k": "q1"},
        {"cache_type_v": "q8_0", "flash_attention": "off"},
        {"numa": "mirror"},
        {"tensor_split": (1.0,) * 100},
    ],
)
def test_what_llama_cpp_does_not_know_is_refused(changes: dict[str, Any]) -> None:
    profile = msgspec.structs.replace(PROFILE, **changes)
    with pytest.raises(EngineError):
        model_params(profile)
        base_params(profile)
        start_numa(profile)


def test_the_numa_strategy_is_set_before_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(llama_cpp, "llama_numa_init", told.append)
    start_numa(PROFILE)
    start_numa(msgspec.structs.replace(PROFILE, numa="isolate"))
    assert told == [llama_cpp.GGML_NUMA_STRATEGY_ISOLATE]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"split_mode": "none", "main_gpu": 1}, "main GPU is 1"),
        ({"tensor_split": (1.0, 1.0)}, "2 shares"),
    ],
)
def test_gpus_that_are_not_there_are_named(changes: dict[str, Any], words: str) -> None:
    profile = msgspec.structs.replace(PROFILE, **changes)
    with pytest.raises(EngineError, match=words):
        check_devices(profile, (GPU,))
    check_devices(profile, (Device(kind="cpu"),))
    check_devices(msgspec.structs.replace(profile, num_gpu_layers=0), (GPU,))


def test_locked_weights_stay_in_memory(tiny_model_path: Path) -> None:
    before = status_of_this_process("VmLck")
    profile = msgspec.structs.replace(PROFILE, use_mlock=True)
    locked = load_model(make_spec(tiny_model_path, profile=profile), lambda _: None)
    assert (status_of_this_process("VmLck") - before) << 10 >= locked.facts().size_bytes
    locked.close()
    assert status_of_this_process("VmLck") == before


def test_a_limit_of_locked_memory_fails_before_loading(
    tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_lock, "_may_lock_anything", lambda: False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 4096))
    profile = msgspec.structs.replace(PROFILE, use_mlock=True)
    with pytest.raises(EngineError, match="ulimit -l"):
        load_model(make_spec(tiny_model_path, profile=profile), lambda _: None)


def test_a_low_limit_is_raised_where_that_is_allowed(
    tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(memory_lock, "_may_lock_anything", lambda: False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 1 << 30))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    memory_lock.allow_memory_lock([str(tiny_model_path)])
    assert raised == [(1 << 30, 1 << 30)]


def test_a_file_is_mapped_or_read(tiny_model_path: Path) -> None:
    def num_maps() -> int:
        return Path("/proc/self/maps").read_text().count(str(tiny_model_path))

    for use_mmap in (True, False):
        before = num_maps()
        profile = msgspec.structs.replace(PROFILE, use_mmap=use_mmap)
        loaded = load_model(make_spec(tiny_model_path, profile=profile), lambda _: None)
        assert (num_maps() > before) is use_mmap
        loaded.close()
