"""Parse a GGUF header: everything that must hold before a value can even be read."""

import struct
from array import array

from inference.gguf.lookalikes import describe_lookalike
from inference.gguf.reader import BoundedReader
from inference.gguf.values import Header, TensorInfo, Value, ValueType
from inference.gguf.verdict import GgufRejected

MAGIC = b"GGUF"
MAX_KEYS = 4096
MAX_TENSORS = 32_768
MAX_KEY_BYTES = 256
MAX_STRING_BYTES = 1024 * 1024
MAX_TENSOR_NAME_BYTES = 63
MAX_ARRAY_ELEMENTS = 4_000_000
HEADER_BYTES = 24
# The smallest legal entries: key 8+1, type 4, value 1; name 8+1, dims 4+8, type 4, offset 8.
MIN_KEY_BYTES = 14
MIN_TENSOR_BYTES = 33
DEFAULT_ALIGNMENT = 32

_SCALARS = {
    ValueType.UINT8: struct.Struct("<B"),
    ValueType.INT8: struct.Struct("<b"),
    ValueType.UINT16: struct.Struct("<H"),
    ValueType.INT16: struct.Struct("<h"),
    ValueType.UINT32: struct.Struct("<I"),
    ValueType.INT32: struct.Struct("<i"),
    ValueType.FLOAT32: struct.Struct("<f"),
    ValueType.UINT64: struct.Struct("<Q"),
    ValueType.INT64: struct.Struct("<q"),
    ValueType.FLOAT64: struct.Struct("<d"),
}
_ARRAY_CODES = {kind: packer.format[1:] for kind, packer in _SCALARS.items()}
_MIN_ELEMENT_BYTES = {kind: packer.size for kind, packer in _SCALARS.items()} | {
    ValueType.BOOL: 1,
    ValueType.STRING: 8,
}
_KEPT_STRING_ARRAYS = frozenset({"tokenizer.ggml.tokens", "tokenizer.chat_templates"})


def read_header(fd: int, size_bytes: int) -> Header:
    """Read the header of an open file; raises GgufRejected with the place of the first fault."""
    reader = BoundedReader(fd, size_bytes)
    version, num_tensors, num_keys = _read_counts(reader)
    metadata = _read_metadata(reader, num_keys)
    alignment = _read_alignment(metadata)
    if num_tensors * MIN_TENSOR_BYTES > reader.remaining:
        raise GgufRejected(
            "tensor_count", f"{num_tensors} tensors cannot fit into the rest of the file.", 8
        )
    tensors = _read_tensors(reader, num_tensors)
    data_start = -(-reader.position // alignment) * alignment
    return Header(
        version=version,
        size_bytes=size_bytes,
        metadata=metadata,
        tensors=tensors,
        alignment=alignment,
        data_start=data_start,
    )


def _read_counts(reader: BoundedReader) -> tuple[int, int, int]:
    """Read the fixed part: version, number of tensors, number of keys."""
    lead = reader.peek(512)
    if reader.size_bytes < 4:
        raise GgufRejected("truncated", f"The file has only {reader.size_bytes} bytes.", 0)
    if len(lead) < len(MAGIC) and MAGIC.startswith(lead):
        raise GgufRejected("shrank", "The file is shorter than it was said to be.", 0)
    if not lead.startswith(MAGIC):
        raise GgufRejected("magic", describe_lookalike(lead), 0)
    if reader.size_bytes < HEADER_BYTES:
        raise GgufRejected("truncated", f"The file has only {reader.size_bytes} bytes.", 4)
    reader.take(4)
    version = reader.u32()
    if version not in (2, 3):
        hint = " (a big-endian file?)" if version and version & 0xFFFF == 0 else ""
        raise GgufRejected("version", f"GGUF version {version}{hint} is not supported.", 4)
    num_tensors, num_keys = reader.u64(), reader.u64()
    if num_tensors > MAX_TENSORS:
        raise GgufRejected("tensor_count", f"{num_tensors} tensors are too many.", 8)
    if num_keys > MAX_KEYS or num_keys * MIN_KEY_BYTES > reader.remaining:
        raise GgufRejected("kv_count", f"{num_keys} keys are too many for this file.", 16)
    if num_keys * MIN_KEY_BYTES + num_tensors * MIN_TENSOR_BYTES > reader.remaining:
        raise GgufRejected("tensor_count", f"{num_tensors} tensors cannot fit into the file.", 8)
    return version, num_tensors, num_keys


def _read_metadata(reader: BoundedReader, num_keys: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for _ in range(num_keys):
        at = reader.position
        raw = reader.string(MAX_STRING_BYTES)
        if not 1 <= len(raw) <= MAX_KEY_BYTES or not all(33 <= byte <= 126 for byte in raw):
            raise GgufRejected("key", "A key is not 1 to 256 printable ASCII characters.", at)
        key = raw.decode("ascii")
        if key in metadata:
            code = "alignment" if key == "general.alignment" else "duplicate"
            raise GgufRejected(code, f"The key {key} is there twice.", at)
        metadata[key] = _read_value(reader, key)
    return metadata


def _read_type(reader: BoundedReader, key: str) -> ValueType:
    at = reader.position
    number = reader.u32()
    try:
        return ValueType(number)
    except ValueError:
        raise GgufRejected("kv_type", f"{key} has the unknown type {number}.", at) from None


def _read_value(reader: BoundedReader, key: str) -> Value:
    kind = _read_type(reader, key)
    at = reader.position
    if kind == ValueType.ARRAY:
        return _read_array(reader, key)
    if kind == ValueType.STRING:
        return Value(kind, reader.string(MAX_STRING_BYTES), at)
    if kind == ValueType.BOOL:
        return Value(kind, _read_bools(reader, 1, key)[0], at)
    packer = _SCALARS[kind]
    return Value(kind, packer.unpack(reader.take(packer.size))[0], at)


def _read_bools(reader: BoundedReader, count: int, key: str) -> list[bool]:
    at = reader.position
    raw = reader.take(count)
    if raw.strip(b"\x00\x01"):
        raise GgufRejected("kv_value", f"{key} has a truth value that is neither 0 nor 1.", at)
    return [byte == 1 for byte in raw]


def _read_array(reader: BoundedReader, key: str) -> Value:
    at = reader.position
    kind = _read_type(reader, key)
    if kind == ValueType.ARRAY:
        raise GgufRejected("array_bounds", f"{key} is an array of arrays.", at)
    count = reader.u64()
    if count * _MIN_ELEMENT_BYTES[kind] > reader.remaining or count > MAX_ARRAY_ELEMENTS:
        raise GgufRejected("array_bounds", f"{key} claims {count} elements, too many.", at)
    data: object
    if kind == ValueType.STRING:
        is_kept = key in _KEPT_STRING_ARRAYS
        strings = reader.strings(count, MAX_STRING_BYTES, is_kept=is_kept)
        data = strings if is_kept else None
    elif kind == ValueType.BOOL:
        data = _read_bools(reader, count, key)
    else:
        data = array(_ARRAY_CODES[kind], reader.take(count * _MIN_ELEMENT_BYTES[kind]))
    return Value(ValueType.ARRAY, data, at, element_type=kind, count=count)


def _read_alignment(metadata: dict[str, Value]) -> int:
    value = metadata.get("general.alignment")
    if value is None:
        return DEFAULT_ALIGNMENT
    alignment = value.data
    is_legal = value.type == ValueType.UINT32 and 8 <= alignment <= 4096
    if not is_legal or alignment & (alignment - 1):
        raise GgufRejected(
            "alignment", "general.alignment is not a power of two from 8 to 4096.", value.offset
        )
    return int(alignment)


def _read_tensors(reader: BoundedReader, num_tensors: int) -> tuple[TensorInfo, ...]:
    tensors: dict[str, TensorInfo] = {}
    for _ in range(num_tensors):
        at = reader.position
        raw = reader.string(MAX_STRING_BYTES)
        if not 1 <= len(raw) <= MAX_TENSOR_NAME_BYTES or b"\x00" in raw:
            raise GgufRejected("tensor_name", "A tensor's name is not 1 to 63 bytes.", at)
        name = raw.decode("utf-8", "backslashreplace")
        if name in tensors:
            raise GgufRejected("duplicate", f"The tensor {name} is there twice.", at)
        num_dims = reader.u32()
        if not 1 <= num_dims <= 4:
            raise GgufRejected("tensor_shape", f"{name} has {num_dims} dimensions.", at)
        dims = tuple(reader.u64() for _ in range(num_dims))
        tensors[name] = TensorInfo(name, dims, reader.u32(), reader.u64(), at)
    return tuple(tensors.values())
