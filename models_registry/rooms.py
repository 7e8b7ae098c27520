"""How much memory does each node have left, and does a replica fit into it? Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from django.conf import settings
from django.utils.module_loading import import_string

from inference.gguf.memory import DeviceMemory, MemoryEstimate
from inference.gguf.offload import HOST
from inference.protocol.nodes import Device
from models_registry.sizes import filesizeformat


@dataclass(frozen=True, slots=True)
class Room:
    """What of a node's memory is promised to nobody. Bytes are 0 where the node tells nothing.

    ``gpus`` are in native order, with what is left as ``free_bytes``.
    """

    node: str
    host_bytes: int
    host_total_bytes: int
    gpus: tuple[Device, ...] = ()

    def holds(self, estimate: MemoryEstimate | None) -> bool:
        """Tell whether a replica fits now, with every slot full; what is unknown fits."""
        return estimate is None or all(
            share.full_bytes <= self._left(share.device) for share in estimate.devices
        )

    def could_hold(self, estimate: MemoryEstimate | None) -> bool:
        """Tell whether a replica would fit if nothing else ran here."""
        return estimate is None or all(
            share.full_bytes <= self._total(share.device) for share in estimate.devices
        )

    def without(self, estimate: MemoryEstimate | None) -> "Room":
        """Give the room that is left beside a replica."""
        if estimate is None:
            return self
        gpus = list(self.gpus)
        for share in estimate.devices[1:]:
            gpu = gpus[share.device]
            left = max(0, gpu.free_bytes - share.full_bytes)
            gpus[share.device] = msgspec.structs.replace(gpu, free_bytes=left)
        host = max(0, self.host_bytes - estimate.host.full_bytes)
        return replace(self, host_bytes=host, gpus=tuple(gpus))

    def with_released(self, estimate: MemoryEstimate | None) -> "Room":
        """Give the room there will be when a replica has ended."""
        if estimate is None:
            return self
        gpus = list(self.gpus)
        for share in estimate.devices[1:]:
            gpu = gpus[share.device]
            free = min(gpu.total_bytes, gpu.free_bytes + share.full_bytes)
            gpus[share.device] = msgspec.structs.replace(gpu, free_bytes=free)
        host = min(self.host_total_bytes, self.host_bytes + estimate.host.full_bytes)
        return replace(self, host_bytes=host, gpus=tuple(gpus))

    def describe_shortage(self, estimate: MemoryEstimate) -> str:
        """Name the first device that is too small, with what it needs and has."""
        for share in estimate.devices:
            if share.full_bytes > self._left(share.device):
                return self._compare(share)
        return ""

    def _compare(self, share: DeviceMemory) -> str:
        name = "memory" if share.device == HOST else self.gpus[share.device].name
        needed, left = (filesizeformat(n) for n in (share.full_bytes, self._left(share.device)))
        return f"{self.node} has {left} of {name} left, it needs {needed}"

    def _left(self, device: int) -> int:
        if device != HOST:
            return self.gpus[device].free_bytes
        return self.host_bytes if self.host_total_bytes else 2**63

    def _total(self, device: int) -> int:
        if device != HOST:
            return self.gpus[device].total_bytes
        return self.host_total_bytes or 2**63


def list_rooms(*, besides: str = "") -> tuple[Room, ...]:
    """List the nodes that run now, leaving out what one deployment has been promised.

    The registry does not know of nodes: ``settings.NODE_ROOMS`` names who does.
    """
    source = import_string(settings.NODE_ROOMS)
    rooms: Sequence[Room] = source(besides=besides)
    return tuple(rooms)
