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


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A node's heartbeat, written each second."""

    node: str
    pid: int = 0
    started_at: float = 0.0
    num_cores: int = 0
    memory_total_bytes: int = 0
    memory_free_bytes: int = 0
    devices: tuple[Device, ...] = ()
    replicas: tuple[str, ...] = ()
    is_draining: bool = False


def usable_gpus(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Give the GPUs a model is spread over: integrated ones only where there is no other."""
    discrete = tuple(device for device in devices if device.kind == "gpu")
    return discrete or tuple(device for device in devices if device.kind == "igpu")
