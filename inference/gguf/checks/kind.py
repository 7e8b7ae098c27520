"""Is this a language model that the engine knows, and a whole one?"""

import re

from inference.gguf.architectures import KNOWN, NOT_SERVED
from inference.gguf.values import Header, ValueType
from inference.gguf.verdict import GgufRejected

MAX_SHARDS = 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}\Z")


def check_kind(header: Header) -> None:
    """Refuse files that are no model of a known architecture."""
    value = header.metadata.get("general.architecture")
    name = header.architecture
    if value is None or not _NAME.match(name):
        at = value.offset if value else None
        raise GgufRejected("architecture", "general.architecture is missing or malformed.", at)
    if name in NOT_SERVED:
        raise GgufRejected("unsupported_kind", f"“{name}” is no language model.", value.offset)
    if name not in KNOWN:
        reason = f"The architecture “{name}” is unknown to this version of the engine."
        raise GgufRejected("architecture", reason, value.offset)
    kind = header.metadata.get("general.type")
    if kind is not None and kind.text != "model":
        reason = f"general.type is “{kind.text}”, only “model” can be served."
        if kind.text == "adapter":
            reason += " A deployment gets an adapter by manage.py import_adapter."
        raise GgufRejected("unsupported_kind", reason, kind.offset)
    for tensor in header.tensors:
        if tensor.name.startswith("direction."):
            raise GgufRejected(
                "unsupported_kind", "This is a control vector, not a model.", tensor.byte_offset
            )


def check_split_keys(header: Header) -> None:
    """Check the keys that make a file a shard: their types, and that the number is in range."""
    for key in ("split.no", "split.count"):
        value = header.metadata.get(key)
        if value is not None and value.type != ValueType.UINT16:
            raise GgufRejected("split", f"{key} is not an unsigned 16-bit integer.", value.offset)
    number, count = header.split
    if "split.count" in header.metadata and not 1 <= count <= MAX_SHARDS:
        raise GgufRejected("shards_incomplete", f"{count} shards are more than {MAX_SHARDS}.")
    if number >= count:
        raise GgufRejected("shards_incomplete", f"Shard {number + 1} of {count} cannot be.")


def check_shards(headers: list[Header]) -> None:
    """Check that the files, in order, are all shards of one model (or the one file of it)."""
    _, count = headers[0].split
    num_files = len(headers)
    if num_files > 1 and any(header.split == (0, 1) for header in headers):
        reason = (
            f"Of these {num_files} files not all are shards of one model, as files that are given "
            "together must be. Give each model by itself."
        )
        raise GgufRejected("shards_incomplete", reason)
    if num_files != count:
        here = "1 is" if num_files == 1 else f"{num_files} are"
        reason = f"The model has {count} shards, and {here} here."
        raise GgufRejected("shards_incomplete", reason)
    architectures = {header.architecture for header in headers if header.architecture}
    if len(architectures) > 1:
        raise GgufRejected("shards_incomplete", "The shards belong to different models.")
    total = sum(len(header.tensors) for header in headers)
    for number, header in enumerate(headers):
        if header.split != (number, count):
            reason = f"Shard {number + 1} of {count} is missing, twice there, or of another set."
            raise GgufRejected("shards_incomplete", reason)
        stated = header.integer("split.tensors.count")
        if count > 1 and stated != total:
            reason = f"The set should have {stated} tensors, but its shards have {total}."
            raise GgufRejected("shards_incomplete", reason)
    names = {tensor.name for header in headers for tensor in header.tensors}
    if len(names) != total:
        raise GgufRejected("duplicate", "Two shards hold a tensor of the same name.")
    if total == 0:
        raise GgufRejected("tensor_count", "The file has no tensors.", 8)
