"""What a node says of its devices, from a made-up list: no GPU is needed."""

import sys
from pathlib import Path

import pytest

from inference.node.devices import DeviceList, memory_bytes, scan_native_devices
from inference.protocol.nodes import Device, usable_gpus

CPU = Device(kind="cpu", name="CPU")
CUDA = Device(
    kind="gpu", id="0000:c1:00.0", name="CUDA0", total_bytes=24 << 30, free_bytes=20 << 30
)
VULKAN = Device(kind="gpu", name="Vulkan0", total_bytes=8 << 30, free_bytes=7 << 30)
SHARED = Device(kind="igpu", name="Vulkan1", total_bytes=16 << 30)


def test_the_host_comes_first_and_gpus_in_native_order() -> None:
    found = DeviceList(lambda: (CUDA, VULKAN, CPU), dict).read()
    assert [device.name for device in found] == ["host", "CUDA0", "Vulkan0"]
    assert found[0].total_bytes > found[0].free_bytes > 0


def test_free_memory_is_read_anew_where_the_driver_tells_it() -> None:
    free = {CUDA.id: 5 << 30}
    listed = DeviceList(lambda: (CUDA, VULKAN), lambda: free)
    assert [device.free_bytes for device in listed.read()[1:]] == [5 << 30, 7 << 30]
    free[CUDA.id] = 0
    assert listed.read()[1].free_bytes == 0


def test_integrated_gpus_count_only_where_there_is_no_other() -> None:
    assert usable_gpus((CPU, SHARED)) == (SHARED,)
    assert usable_gpus((CPU, SHARED, CUDA)) == (CUDA,)
    assert usable_gpus((CPU,)) == ()


def test_llama_cpp_is_asked_in_a_process_of_its_own() -> None:
    assert "cpu" in {device.kind for device in scan_native_devices()}


def test_a_library_that_cannot_be_asked_means_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert scan_native_devices() == ()


def test_a_container_has_no_more_than_its_limit(tmp_path: Path) -> None:
    machine, _ = memory_bytes(tmp_path)
    (tmp_path / "memory.max").write_text(f"{1 << 30}\n")
    (tmp_path / "memory.current").write_text(f"{700 << 20}\n")
    (tmp_path / "memory.stat").write_text(f"anon {400 << 20}\ninactive_file {300 << 20}\n")
    assert memory_bytes(tmp_path) == (1 << 30, (1 << 30) - (400 << 20))
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_bytes(tmp_path)[0] == machine
