"""Do shapes, sizes and offsets add up, in exact integers, and does the file hold all of them?"""

import re

from inference.gguf.tensor_types import TENSOR_TYPES
from inference.gguf.values import Header, TensorInfo
from inference.gguf.verdict import GgufRejected

# llama.cpp counts in signed 64-bit integers; anything that would not fit is refused.
LIMIT = 2**63
_BLOCK = re.compile(r"blk\.(\d+)\.")


def tensor_bytes(tensor: TensorInfo) -> int:
    """Give the bytes of a tensor whose type and shape have been checked."""
    kind = TENSOR_TYPES[tensor.type_id]
    return tensor.num_elements // kind.block * kind.size_bytes


def check_tensors(header: Header) -> None:
    """Check every tensor, in file order; note trailing bytes as a warning."""
    expected = 0
    for tensor in header.tensors:
        _check_shape(tensor)
        if tensor.offset != expected:
            reason = f"{tensor.name} begins at {tensor.offset} where {expected} is due."
            raise GgufRejected("tensor_offset", reason, tensor.byte_offset)
        expected += -(-tensor_bytes(tensor) // header.alignment) * header.alignment
        if expected >= LIMIT:
            reason = "The tensors together are larger than any file."
            raise GgufRejected("data_size", reason, tensor.byte_offset)
    _check_file_size(header)


def _check_file_size(header: Header) -> None:
    ends_at = header.data_start
    for tensor in header.tensors:
        ends_at = header.data_start + tensor.offset + tensor_bytes(tensor)
        if ends_at > header.size_bytes:
            reason = (
                f"{tensor.name} ends at byte {ends_at}, but the file has {header.size_bytes}: "
                "the upload or download was cut off."
            )
            raise GgufRejected("truncated", reason, tensor.byte_offset)
    trailing = header.size_bytes - ends_at
    if trailing > header.alignment:
        header.warnings.append(f"{trailing} bytes after the last tensor belong to nothing.")


def check_embedding_table(header: Header, num_vocab: int) -> None:
    """Check that the token table is as wide and as long as the metadata say."""
    width = header.integer(f"{header.architecture}.embedding_length")
    for tensor in header.tensors:
        if tensor.name == "token_embd.weight" and tensor.dims != (width, num_vocab):
            reason = f"token_embd.weight is {tensor.dims}, not {width} by {num_vocab}."
            raise GgufRejected("tensor_shape", reason, tensor.byte_offset)


def count_blocks(tensors: list[TensorInfo]) -> int:
    """Count the layers that have tensors of their own."""
    return len({match[1] for tensor in tensors if (match := _BLOCK.match(tensor.name))})


def _check_shape(tensor: TensorInfo) -> None:
    name, at = tensor.name, tensor.byte_offset
    kind = TENSOR_TYPES.get(tensor.type_id)
    if kind is None:
        raise GgufRejected("tensor_type", f"{name} has the unknown type {tensor.type_id}.", at)
    if any(not 1 <= dim < LIMIT for dim in tensor.dims) or tensor.num_elements >= LIMIT:
        raise GgufRejected("tensor_shape", f"{name} has an impossible shape {tensor.dims}.", at)
    if tensor.dims[0] % kind.block:
        reason = f"{name}: rows of {tensor.dims[0]} do not divide into blocks of {kind.block}."
        raise GgufRejected("tensor_shape", reason, at)
    if tensor.num_elements * kind.size_bytes >= LIMIT:
        raise GgufRejected("tensor_nbytes", f"{name} is larger than any file.", at)
