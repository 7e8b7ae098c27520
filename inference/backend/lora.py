"""Which LoRA adapters fit a loaded model, and how does a context use them?"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llama_cpp

from inference.backend import native
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import LoraAdapter

Scales = tuple[float, ...]
"""How strongly each adapter of a model acts, in the order of its list; 0 is not at all."""


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
    """Sets which adapters a context computes with."""

    def __init__(self, context: int, adapters: Sequence[LoadedAdapter]) -> None:
        self._context = context
        count = len(adapters)
        self._handles = (llama_cpp.llama_adapter_lora_p_ctypes * count)(
            *(one.handle for one in adapters)
        )
        self._scales = (ctypes.c_float * count)()
        self._in_use: Scales = (0.0,) * count

    def use(self, scales: Scales) -> None:
        """Have the next batches computed with these scales; the same ones again cost nothing."""
        if scales == self._in_use:
            return
        assert len(scales) == len(self._in_use)
        self._scales[:] = list(scales)
        llama_cpp.llama_set_adapters_lora(self._context, self._handles, len(scales), self._scales)
        self._in_use = scales
