"""Judge a LoRA adapter by its header, and say for which models it is."""

import msgspec

from inference.gguf.architectures import KNOWN
from inference.gguf.checks.tensors import check_tensors
from inference.gguf.header import read_header
from inference.gguf.values import Header
from inference.gguf.verdict import GgufRejected

_WAITS = "adapter.alora.invocation_tokens"


class AdapterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter's header says. Its architecture must be that of the model it changes."""

    architecture: str
    name: str = ""
    size_bytes: int = 0
    num_tensors: int = 0


def validate_adapter(descriptor: int, size_bytes: int) -> AdapterSummary:
    """Check an open file; raises GgufRejected for the first fault found."""
    header = read_header(descriptor, size_bytes)
    check_adapter(header)
    return AdapterSummary(
        architecture=header.architecture,
        name=(header.text("general.name") or "")[:200],
        size_bytes=size_bytes,
        num_tensors=len(header.tensors),
    )


def check_adapter(header: Header) -> None:
    """Check all that an adapter can be checked for without its model; raises GgufRejected."""
    _check_kind(header)
    check_tensors(header)
    _check_pairs(header)


def _check_kind(header: Header) -> None:
    if header.text("general.type") != "adapter":
        raise GgufRejected("unsupported_kind", "This is no adapter: general.type does not say so.")
    kind = header.text("adapter.type")
    if kind != "lora":
        raise GgufRejected("unsupported_kind", f"adapter.type is “{kind}”, only “lora” is known.")
    if _WAITS in header.metadata:
        reason = "It acts only behind certain words (aLoRA), which is not supported."
        raise GgufRejected("unsupported_kind", reason, header.metadata[_WAITS].offset)
    if header.architecture not in KNOWN:
        name = header.architecture
        raise GgufRejected("architecture", f"The architecture “{name}” is unknown to the engine.")


def _check_pairs(header: Header) -> None:
    """Check that each changed matrix has both its halves, of one rank.

    Norms may lie beside them: llama.cpp leaves those as they are.
    """
    halves = {one.name: one for one in header.tensors if not one.name.endswith("_norm.weight")}
    if not halves:
        raise GgufRejected("tensor_count", "The adapter changes no matrix.", 8)
    for name, half in halves.items():
        base, _, side = name.rpartition(".")
        if side not in ("lora_a", "lora_b"):
            reason = f"{name} is no part of a LoRA adapter."
            raise GgufRejected("tensor_name", reason, half.byte_offset)
        first, second = halves.get(f"{base}.lora_a"), halves.get(f"{base}.lora_b")
        if first is None or second is None:
            raise GgufRejected("tensor_name", f"{name} lacks its counterpart.", half.byte_offset)
        if len(first.dims) < 2 or first.dims[1] != second.dims[0]:
            reason = f"{name} and its counterpart are not of one rank."
            raise GgufRejected("tensor_shape", reason, half.byte_offset)
