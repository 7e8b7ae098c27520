"""What is one file, by its header alone: a model, a shard of one, an adapter, a projector?"""

from enum import StrEnum

import msgspec

from inference.gguf.adapter import check_adapter
from inference.gguf.architectures import KNOWN
from inference.gguf.checks.hparams import check_hparams
from inference.gguf.checks.kind import check_kind, check_split_keys
from inference.gguf.checks.template import check_templates
from inference.gguf.checks.tensors import check_tensors
from inference.gguf.checks.tokenizer import check_tokenizer
from inference.gguf.header import read_header
from inference.gguf.values import Header
from inference.gguf.verdict import GgufRejected

PROJECTOR = "clip"


class FilePart(StrEnum):
    """What a file is to the model it comes with."""

    WEIGHTS = "weights"
    ADAPTER = "lora"
    PROJECTOR = "mmproj"


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one file says of itself. ``shard`` counts from 0, of ``num_shards``."""

    part: FilePart
    architecture: str = ""
    name: str = ""
    shard: int = 0
    num_shards: int = 1
    num_tensors: int = 0


def recognise_file(descriptor: int, size_bytes: int) -> FileFacts:
    """Read one open file's header and check all that one file can be checked for.

    ``size_bytes`` is what the file will have when it is whole. Raises GgufRejected; with the code
    ``shrank`` if the header goes on behind what is there.
    """
    header = read_header(descriptor, size_bytes)
    part = _part_of(header)
    if part is FilePart.ADAPTER:
        check_adapter(header)
    else:
        check_tensors(header)
        _check_projector(header) if part is FilePart.PROJECTOR else _check_weights(header)
    shard, num_shards = header.split
    return FileFacts(
        part=part,
        architecture=header.architecture,
        name=(header.text("general.name") or "")[:200],
        shard=shard,
        num_shards=num_shards,
        num_tensors=len(header.tensors),
    )


def _part_of(header: Header) -> FilePart:
    kind = header.text("general.type")
    if kind == "adapter":
        return FilePart.ADAPTER
    if kind == "mmproj" or header.architecture == PROJECTOR:
        return FilePart.PROJECTOR
    return FilePart.WEIGHTS


def _check_weights(header: Header) -> None:
    """Check a whole model, or the shard that describes one; later shards describe themselves."""
    check_split_keys(header)
    shard, num_shards = header.split
    if shard > 0:
        return
    check_kind(header)
    if not header.tensors and num_shards == 1:
        raise GgufRejected("tensor_count", "The file has no tensors.", 8)
    check_hparams(header)
    check_tokenizer(header)
    check_templates(header)


def _check_projector(header: Header) -> None:
    """Check that it is a projector, as llama.cpp writes them. It does not say for which model."""
    if header.architecture != PROJECTOR or header.architecture in KNOWN:
        reason = f"A projector's architecture is “{PROJECTOR}”, not “{header.architecture}”."
        raise GgufRejected("architecture", reason)
    if not header.tensors:
        raise GgufRejected("tensor_count", "The file has no tensors.", 8)
    if not any(key.startswith(f"{PROJECTOR}.") for key in header.metadata):
        raise GgufRejected("hparam", f"The header has no {PROJECTOR}.* keys.")
