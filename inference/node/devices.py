"""What this machine has to run models on: cores, memory, GPUs."""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from inference.protocol.nodes import Device

logger = logging.getLogger(__name__)
SCAN_SECONDS = 30.0
_CGROUP = Path("/sys/fs/cgroup")
_ROOT = Path(__file__).resolve().parents[2]
_decoder = msgspec.json.Decoder(tuple[Device, ...])


class DeviceList:
    """The host and its GPUs: found once, with free memory read anew each time it is asked.

    ``scan`` asks llama.cpp, ``read_free`` gives the free bytes of GPUs by device id.
    """

    def __init__(
        self,
        scan: "Callable[[], tuple[Device, ...]] | None" = None,
        read_free: "Callable[[], Mapping[str, int]] | None" = None,
    ) -> None:
        found = (scan or scan_native_devices)()
        self._gpus = tuple(device for device in found if device.kind in ("gpu", "igpu"))
        self._read_free = read_free or read_nvidia_free

    def read(self) -> tuple[Device, ...]:
        """Give the host first, then the GPUs in llama.cpp's order."""
        total, free = memory_bytes()
        host = Device(kind="cpu", name="host", total_bytes=total, free_bytes=free)
        free_now = self._read_free() if self._gpus else {}
        return (host, *(self._refresh(gpu, free_now) for gpu in self._gpus))

    @staticmethod
    def _refresh(gpu: Device, free_now: Mapping[str, int]) -> Device:
        free = free_now.get(gpu.id)
        if free is None:
            return msgspec.structs.replace(gpu, is_free_current=False)
        return msgspec.structs.replace(gpu, free_bytes=free)


def scan_native_devices() -> tuple[Device, ...]:
    """Ask llama.cpp in a process that ends; nothing where it cannot be asked."""
    command = [sys.executable, "-m", "inference.backend.devices"]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, timeout=SCAN_SECONDS, check=True
        )
        return _decoder.decode(answer.stdout)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        logger.warning("llama.cpp cannot be asked for devices, taking none for a GPU: %s", error)
        return ()


def memory_bytes(cgroup: Path = _CGROUP) -> tuple[int, int]:
    """Give total and available memory, of the container where that is less; zeros if unknown."""
    total, free = _machine_memory()
    limit, used = _read_number(cgroup / "memory.max"), _read_number(cgroup / "memory.current")
    if not limit or (total and limit >= total):
        return total, free
    # Page cache counts as used there, but goes when memory is needed.
    reclaimable = _read_stat(cgroup / "memory.stat", "inactive_file")
    room = max(0, limit - max(0, used - reclaimable))
    return limit, min(free, room) if free else room


def num_usable_cores() -> int:
    """Count the cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _machine_memory() -> tuple[int, int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _memory_by_sysconf()
    sizes = {name: int(rest.split()[0]) << 10 for name, rest in (line.split(":") for line in lines)}
    return sizes.get("MemTotal", 0), sizes.get("MemAvailable", 0)


def _memory_by_sysconf() -> tuple[int, int]:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), 0
    except (ValueError, OSError):
        return 0, 0


def _read_number(path: Path) -> int:
    """Read a number of a control group; 0 where there is none, or no limit."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _read_stat(path: Path, name: str) -> int:
    try:
        fields = dict(line.split() for line in path.read_text().splitlines())
        return int(fields.get(name, 0))
    except (OSError, ValueError):
        return 0


@cache
def _load_nvml() -> Any:
    """Give NVIDIA's management library, or None on machines without one."""
    try:
        nvml = import_module("pynvml")  # optional: only nodes with such GPUs install it
        nvml.nvmlInit()
    except Exception:  # no package, no driver, a broken driver: all mean no figures
        return None
    return nvml


def read_nvidia_free() -> dict[str, int]:
    """Give the free memory of NVIDIA GPUs by PCI address, written as llama.cpp writes it."""
    nvml = _load_nvml()
    if nvml is None:
        return {}
    found = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        address = nvml.nvmlDeviceGetPciInfo(handle).busId
        text = address.decode() if isinstance(address, bytes) else str(address)
        domain, _, rest = text.lower().partition(":")
        found[f"{domain[-4:]}:{rest}"] = int(nvml.nvmlDeviceGetMemoryInfo(handle).free)
    return found
