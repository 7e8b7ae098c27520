"""What this machine has to run models on: cores, memory, GPUs."""

import os
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from inference.protocol.nodes import Device


def memory_bytes() -> tuple[int, int]:
    """Give the machine's total and available memory; zeros where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _memory_by_sysconf()
    sizes = {name: int(rest.split()[0]) << 10 for name, rest in (line.split(":") for line in lines)}
    return sizes.get("MemTotal", 0), sizes.get("MemAvailable", 0)


def list_devices() -> tuple[Device, ...]:
    """List the host and its NVIDIA GPUs."""
    total, free = memory_bytes()
    host = Device(kind="cpu", name="host", total_bytes=total, free_bytes=free)
    return (host, *_list_gpus())


def num_usable_cores() -> int:
    """Count the cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_by_sysconf() -> tuple[int, int]:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), 0
    except (ValueError, OSError):
        return 0, 0


@cache
def _load_nvml() -> Any:
    """Give NVIDIA's management library, or None on machines without one."""
    try:
        nvml = import_module("pynvml")  # optional: only nodes with such GPUs install it
        nvml.nvmlInit()
    except Exception:  # no package, no driver, a broken driver: all mean no GPU here
        return None
    return nvml


def _list_gpus() -> tuple[Device, ...]:
    nvml = _load_nvml()
    if nvml is None:
        return ()
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        name = nvml.nvmlDeviceGetName(handle)
        found.append(
            Device(kind="cuda", name=str(name), total_bytes=memory.total, free_bytes=memory.free)
        )
    return tuple(found)
