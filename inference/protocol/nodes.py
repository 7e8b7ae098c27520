"""A node as a value: the machine that runs replicas, and what it has to run them on."""

import msgspec


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One place to put a model: the host (cpu), a gpu, or one that shares the host's memory (igpu).

    GPUs are in the order that main_gpu and tensor_split count them; ``id`` is a GPU's PCI address.
    Byte counts are 0 where unknown; ``is_free_current`` tells that the free ones are read anew.
    """

    kind: str
    id: str = ""
    name: str = ""
    description: str = ""
    total_bytes: int = 0
    free_bytes: int = 0
    is_free_current: bool = True


class CachedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A model file that was fetched to a node, and when it was used last (Unix time)."""

    sha256: str
    size_bytes: int
    used_at: float = 0.0


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A node's heartbeat, written each second.

    ``fetches_files`` tells that it keeps files of its own, at most ``cache_limit_bytes`` of them
    (0: what the disk has); those used last are listed.
    """

    node: str
    pid: int = 0
    started_at: float = 0.0
    num_cores: int = 0
    memory_total_bytes: int = 0
    memory_free_bytes: int = 0
    devices: tuple[Device, ...] = ()
    replicas: tuple[str, ...] = ()
    is_draining: bool = False
    fetches_files: bool = False
    cache_limit_bytes: int = 0
    cached_files: tuple[CachedFile, ...] = ()


def usable_gpus(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Give the GPUs a model is spread over: integrated ones only where there is no other."""
    discrete = tuple(device for device in devices if device.kind == "gpu")
    return discrete or tuple(device for device in devices if device.kind == "igpu")
