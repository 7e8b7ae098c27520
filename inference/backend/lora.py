"""Which LoRA adapters fit a loaded model, and how does a context use them?"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llama_cpp

from inference.backend import native
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import Loras
from inference.protocol.replicas import LoraAdapter


@dataclass(frozen=True, slots=True)
class LoadedAdapter:
    """An adapter in memory; llama.cpp frees it together with its model."""

    spec: LoraAdapter
    handle: Any


def load_adapters(model: int, specs: Sequence[LoraAdapter]) -> tuple[LoadedAdapter, ...]:
    """Load adapters beside a model, before any context is made; raises EngineError naming one."""
    return tuple(LoadedAdapter(spec, _load(model, spec)) for spec in specs)


def _load(model: int, spec: LoraAdapter) -> Any:
    native.initialize()
    handle = llama_cpp.llama_adapter_lora_init(model, spec.file.encode())
    if not handle:
        reason = native.last_errors() or "the file is missing or damaged"
        raise _refuse(spec, reason)
    if llama_cpp.llama_adapter_get_alora_n_invocation_tokens(handle):
        raise _refuse(spec, "it acts from certain words on only, which is not supported")
    return handle


def _refuse(spec: LoraAdapter, reason: str) -> EngineError:
    return EngineError(
        ErrorCode.ENGINE_FAILED, f"The LoRA adapter '{spec.name}' could not be loaded: {reason}"
    )


class AdapterSwitch:
    """Sets which adapters a context computes with; at first it does with none."""

    def __init__(self, context: int, adapters: Sequence[LoadedAdapter]) -> None:
        self._context, self._adapters = context, adapters
        self._in_use: Loras = ()

    def use(self, loras: Loras) -> None:
        """Compute with these from the next batch on; the same ones again cost nothing.

        Others cost llama.cpp the planning of its graph: some milliseconds.
        """
        if loras == self._in_use:
            return
        count = len(loras)
        handles = (llama_cpp.llama_adapter_lora_p_ctypes * count)(
            *(self._adapters[index].handle for index, _ in loras)
        )
        scales = (ctypes.c_float * count)(*(scale for _, scale in loras))
        llama_cpp.llama_set_adapters_lora(self._context, handles, count, scales)
        self._in_use = loras
