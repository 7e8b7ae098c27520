"""Which part of a model lies on which device? As llama.cpp deals layers out, without loading."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import msgspec

from inference.gguf.shape import LayerShape, MemoryShape
from inference.protocol.nodes import Device
from inference.protocol.replicas import RuntimeProfile

HOST = -1


@dataclass(frozen=True, slots=True)
class Assignment:
    """The parts of a model, each with the device it lies on."""

    parts: tuple[tuple[int, LayerShape], ...]

    def parts_on(self, device: int) -> list[LayerShape]:
        """Give what lies on a device."""
        return [part for place, part in self.parts if place == device]

    @property
    def gpus(self) -> list[int]:
        """The GPUs that take a share, in order."""
        return sorted({place for place, _ in self.parts} - {HOST})


def assign_layers(
    shape: MemoryShape, profile: RuntimeProfile, gpus: Sequence[Device]
) -> Assignment:
    """Deal out the layers, the last of them to GPUs; the token table stays on the host."""
    num_layers = len(shape.layers)
    wanted = profile.num_gpu_layers if profile.num_gpu_layers >= 0 else num_layers + 1
    num_offloaded = min(wanted, num_layers + 1) if gpus else 0
    first = num_layers + 1 - num_offloaded
    bounds = _bounds(profile, gpus)

    def place(number: int) -> int:
        if number < first:
            return HOST
        if profile.split_mode == "none":
            return min(profile.main_gpu, len(gpus) - 1)
        return min(bisect_right(bounds, (number - first) / num_offloaded), len(gpus) - 1)

    last = place(num_layers)
    output = shape.output
    if shape.is_output_tied and last != HOST:
        copied = shape.input.weights_bytes
        output = msgspec.structs.replace(output, weights_bytes=output.weights_bytes + copied)
    dealt = [(place(number), layer) for number, layer in enumerate(shape.layers)]
    return Assignment(((HOST, shape.input), *dealt, (last, output)))


def _bounds(profile: RuntimeProfile, gpus: Sequence[Device]) -> list[float]:
    """Give where each GPU's share ends, from 0 to 1: as asked for, else by free memory."""
    shares = [*profile.tensor_split[: len(gpus)]]
    shares += [0.0] * (len(gpus) - len(shares))
    if not any(shares):
        shares = [float(gpu.free_bytes or gpu.total_bytes or 1) for gpu in gpus]
    whole = sum(shares)
    return [share / whole for share in accumulate(shares)]
