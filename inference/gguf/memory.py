"""How much memory does a replica take, on the host and on each GPU, idle and at most?

benchmarks/memory_estimate.py compares what is said here with what is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import msgspec

from inference.gguf.compute_buffer import compute_bytes
from inference.gguf.context_use import ContextUse, embedding, encoding, generating, grouping
from inference.gguf.offload import HOST, Assignment, assign_layers
from inference.gguf.shape import LayerShape, MemoryShape
from inference.gguf.weights import convert_shape
from inference.protocol.nodes import Device
from inference.protocol.replicas import RuntimeProfile

MIB = 1 << 20
# Bytes of one block of a cache type, and the numbers in it.
CELL_BYTES = {
    "f32": (4, 1),
    "f16": (2, 1),
    "bf16": (2, 1),
    "q8_0": (34, 32),
    "q5_1": (24, 32),
    "q5_0": (22, 32),
    "q4_1": (20, 32),
    "q4_0": (18, 32),
    "iq4_nl": (18, 32),
}
# A replica's process without a model: Python, its libraries, llama.cpp.
PROCESS_BYTES = 80 * MIB
# What a token of the vocabulary takes in llama.cpp's tables, and a merge of its tokenizer.
TOKEN_BYTES = 160
MERGE_BYTES = 190
# What a GPU's driver takes for each process that uses it: an assumption, to be measured.
DRIVER_BYTES = 400 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """What a replica takes of one device: -1 is the host, GPUs count from 0.

    Weights in ``mapped_bytes`` lie in the page cache, once for all replicas of a file; ``other``
    is the process, its vocabulary and adapters; ``spare`` what jobs may add that ask for the
    log-probabilities of their prompt or begin alike, and cold prefixes.
    """

    device: int
    weights_bytes: int = 0
    mapped_bytes: int = 0
    cache_bytes: int = 0
    compute_bytes: int = 0
    other_bytes: int = 0
    spare_bytes: int = 0

    @property
    def most_bytes(self) -> int:
        """What it never exceeds."""
        return self.full_bytes + self.spare_bytes

    @property
    def full_bytes(self) -> int:
        """What it takes when every slot is full."""
        return self.weights_bytes + self.mapped_bytes + self.other_bytes + self._on_use

    @property
    def idle_bytes(self) -> int:
        """What it takes once loaded: the host's cache and buffers come with their first use."""
        return self.full_bytes - (self._on_use if self.device == HOST else 0)

    @property
    def _on_use(self) -> int:
        return self.cache_bytes + self.compute_bytes

    def plus(self, more: "DeviceMemory") -> "DeviceMemory":
        """Add what another model takes of the same device."""
        names = [field.name for field in fields(self) if field.name != "device"]
        sums = {name: getattr(self, name) + getattr(more, name) for name in names}
        return DeviceMemory(device=self.device, **sums)


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """The host first, then each GPU that takes a share."""

    devices: tuple[DeviceMemory, ...]

    @property
    def host(self) -> DeviceMemory:
        """What the host's memory takes."""
        return self.devices[0]

    @property
    def most_bytes(self) -> int:
        """What all devices together never exceed."""
        return sum(device.most_bytes for device in self.devices)

    @property
    def full_bytes(self) -> int:
        """All devices together, when every slot is full."""
        return sum(device.full_bytes for device in self.devices)

    @property
    def idle_bytes(self) -> int:
        """All devices together, before any job."""
        return sum(device.idle_bytes for device in self.devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a replica loads: a model, what it is for, and what comes beside it."""

    shape: MemoryShape
    context_length: int
    is_generative: bool = True
    adapter_bytes: int = 0
    draft: "Load | None" = None


def estimate_memory(
    load: Load, profile: RuntimeProfile, gpus: Sequence[Device] = ()
) -> MemoryEstimate:
    """Estimate a replica's memory on a node with these GPUs (in native order)."""
    shape = convert_shape(load.shape, profile.weight_type)
    shares = _shares_of(replace(load, shape=shape), profile, gpus)
    process = PROCESS_BYTES + load.adapter_bytes
    prefixes = profile.prefix_host_bytes if load.is_generative else 0
    shares[HOST] = shares[HOST].plus(
        DeviceMemory(device=HOST, other_bytes=process, spare_bytes=prefixes)
    )
    if load.draft is not None:
        alone = msgspec.structs.replace(
            profile, kv_cells=0, serves_embeddings=False, groups_prefixes=False
        )
        for device, share in _shares_of(load.draft, alone, gpus).items():
            shares[device] = share.plus(shares.get(device, DeviceMemory(device=device)))
    for device in shares.keys() - {HOST}:
        driver = DeviceMemory(device=device, other_bytes=DRIVER_BYTES)
        shares[device] = shares[device].plus(driver)
    return MemoryEstimate(tuple(shares[device] for device in sorted(shares)))


def _shares_of(
    load: Load, profile: RuntimeProfile, gpus: Sequence[Device]
) -> dict[int, DeviceMemory]:
    """Give what one model takes of each device, the host at least."""
    assignment = assign_layers(load.shape, profile, gpus)
    uses = _uses_of(load, profile)
    shares = {
        device: _share(device, assignment, load.shape, profile, uses)
        for device in (HOST, *assignment.gpus)
    }
    may_group = load.is_generative and profile.group_cells(load.context_length)
    if may_group and len(shares) == 1 and _can_group(load.shape):
        use = grouping(load.shape, profile, load.context_length)
        cells = _cache_bytes(load.shape.layers, profile, use)
        more = cells + compute_bytes(load.shape, use, use.num_most_rows)
        shares[HOST] = shares[HOST].plus(DeviceMemory(device=HOST, spare_bytes=more))
    return shares


def _can_group(shape: MemoryShape) -> bool:
    """Tell whether sequences can share cells: no states, and no window that drops some."""
    return shape.num_masks == 1 and not any(layer.state_elements for layer in shape.layers)


def _uses_of(load: Load, profile: RuntimeProfile) -> list[ContextUse]:
    length = load.context_length
    if not load.is_generative:
        has_cache = any(layer.k_elements or layer.state_elements for layer in load.shape.layers)
        use = embedding if has_cache else encoding
        return [use(load.shape, profile, length)]
    uses = [generating(load.shape, profile, length)]
    if profile.serves_embeddings:
        uses.append(embedding(load.shape, profile, length))
    return uses


def _share(
    device: int,
    assignment: Assignment,
    shape: MemoryShape,
    profile: RuntimeProfile,
    uses: Sequence[ContextUse],
) -> DeviceMemory:
    parts = assignment.parts_on(device)
    weights = sum(part.weights_bytes for part in parts)
    usual = most = 0
    if parts:
        usual = sum(compute_bytes(shape, use, use.num_rows) for use in uses)
        most = sum(compute_bytes(shape, use, use.num_most_rows) for use in uses)
    cache = sum(_cache_bytes(parts, profile, use) for use in uses)
    if device != HOST:
        return DeviceMemory(
            device=device, weights_bytes=weights, cache_bytes=cache, compute_bytes=most
        )
    repacked = sum(part.repacked_bytes for part in parts)
    # A row for each sequence is there from the start, more come when they are needed.
    first_rows = sum(4 * use.num_sequences * use.output_width for use in uses)
    rows = sum(4 * use.num_rows * use.output_width for use in uses)
    most_rows = sum(4 * use.num_most_rows * use.output_width for use in uses)
    return DeviceMemory(
        device=HOST,
        # A mapped file keeps the original of what is rearranged.
        weights_bytes=repacked if profile.use_mmap else weights,
        mapped_bytes=weights if profile.use_mmap else 0,
        cache_bytes=cache,
        compute_bytes=usual + rows - first_rows,
        other_bytes=TOKEN_BYTES * shape.num_vocab + MERGE_BYTES * shape.num_merges + first_rows,
        spare_bytes=most + most_rows - usual - rows,
    )


def _cache_bytes(parts: Sequence[LayerShape], profile: RuntimeProfile, use: ContextUse) -> int:
    per_token = sum(
        _cell_bytes(part.k_elements, profile.cache_type_k)
        + _cell_bytes(part.v_elements, profile.cache_type_v)
        for part in parts
    )
    states = 4 * sum(part.state_elements for part in parts) * use.num_sequences
    return per_token * use.num_cells + states


def _cell_bytes(elements: int, cache_type: str) -> int:
    num_bytes, block = CELL_BYTES[cache_type]
    return elements // block * num_bytes
