"""What weights take once they are converted to a type that CPUs compute faster with."""

from collections.abc import Callable

import msgspec

from inference.gguf.shape import LayerShape, MemoryShape

# Bytes of one block of a weight type, and the numbers in it.
WEIGHT_BYTES = {"q8_0": (34, 32), "f16": (2, 1)}
# What records of headers that were read without counting elements are taken for: 4 bits each.
_FEWEST_BYTES = (18, 32)


def convert_shape(shape: MemoryShape, weight_type: str) -> MemoryShape:
    """Give the sizes of a model whose matrices are converted; unchanged for an empty type."""
    if not weight_type:
        return shape
    if not any(layer.matrix_elements for layer in shape.layers):
        shape = _change(shape, _guess_elements)
    return _change(shape, lambda part: _convert(part, weight_type))


def _change(shape: MemoryShape, change: Callable[[LayerShape], LayerShape]) -> MemoryShape:
    return msgspec.structs.replace(
        shape,
        layers=tuple(map(change, shape.layers)),
        input=change(shape.input),
        output=change(shape.output),
    )


def _guess_elements(part: LayerShape) -> LayerShape:
    num_bytes, block = _FEWEST_BYTES
    return msgspec.structs.replace(
        part,
        matrix_bytes=part.weights_bytes,
        matrix_elements=part.weights_bytes // num_bytes * block,
    )


def _convert(part: LayerShape, weight_type: str) -> LayerShape:
    num_bytes, block = WEIGHT_BYTES[weight_type]
    converted = -(-part.matrix_elements // block) * num_bytes
    return msgspec.structs.replace(
        part,
        weights_bytes=part.weights_bytes - part.matrix_bytes + converted,
        repacked_bytes=0,
        matrix_bytes=converted,
    )
