"""What does a profile mean in llama.cpp's own parameters, and which profiles can never load?"""

import ctypes
import os
from typing import Any

import llama_cpp

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import PLAIN_CACHE_TYPES, RuntimeProfile
from inference.protocol.sizes import PHYSICAL_BATCH

_CACHE_TYPES = {
    "f32": llama_cpp.GGML_TYPE_F32,
    "f16": llama_cpp.GGML_TYPE_F16,
    "bf16": 30,
    "q8_0": llama_cpp.GGML_TYPE_Q8_0,
    "q5_1": llama_cpp.GGML_TYPE_Q5_1,
    "q5_0": llama_cpp.GGML_TYPE_Q5_0,
    "q4_1": llama_cpp.GGML_TYPE_Q4_1,
    "q4_0": llama_cpp.GGML_TYPE_Q4_0,
    "iq4_nl": llama_cpp.GGML_TYPE_IQ4_NL,
}
_FLASH_ATTENTION = {
    "auto": llama_cpp.LLAMA_FLASH_ATTN_TYPE_AUTO,
    "on": llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED,
    "off": llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED,
}
_SPLIT_MODES = {
    "none": llama_cpp.LLAMA_SPLIT_MODE_NONE,
    "layer": llama_cpp.LLAMA_SPLIT_MODE_LAYER,
    "row": llama_cpp.LLAMA_SPLIT_MODE_ROW,
}
_NUMA = {
    "": llama_cpp.GGML_NUMA_STRATEGY_DISABLED,
    "distribute": llama_cpp.GGML_NUMA_STRATEGY_DISTRIBUTE,
    "isolate": llama_cpp.GGML_NUMA_STRATEGY_ISOLATE,
    "numactl": llama_cpp.GGML_NUMA_STRATEGY_NUMACTL,
}
# By whether the file is mapped, and whether it is locked.
_LOAD_MODES = {
    (True, True): llama_cpp.LLAMA_LOAD_MODE_MMAP_MLOCK,
    (True, False): llama_cpp.LLAMA_LOAD_MODE_MMAP,
    (False, True): llama_cpp.LLAMA_LOAD_MODE_MLOCK,
    (False, False): llama_cpp.LLAMA_LOAD_MODE_NONE,
}


def model_params(profile: RuntimeProfile) -> Any:
    """Give the parameters that weights are loaded with; raises EngineError."""
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = profile.num_gpu_layers
    params.main_gpu = profile.main_gpu
    params.split_mode = _choose(_SPLIT_MODES, profile.split_mode, "split mode")
    params.load_mode = _LOAD_MODES[profile.use_mmap, profile.use_mlock]
    if profile.tensor_split:
        size = llama_cpp.llama_max_devices()
        if len(profile.tensor_split) > size:
            raise _refuse(f"The tensor split names more than {size} GPUs.")
        shares = (*profile.tensor_split, *[0.0] * (size - len(profile.tensor_split)))
        params.tensor_split = (ctypes.c_float * size)(*shares)
    return params


def base_params(profile: RuntimeProfile) -> Any:
    """Give the context parameters that generation and embedding share; raises EngineError."""
    params = llama_cpp.llama_context_default_params()
    params.n_threads = profile.num_threads or num_cores()
    params.n_threads_batch = profile.num_threads_batch or params.n_threads
    params.flash_attn_type = _choose(_FLASH_ATTENTION, profile.flash_attention, "flash attention")
    params.type_k = _choose(_CACHE_TYPES, profile.cache_type_k, "KV cache type")
    params.type_v = _choose(_CACHE_TYPES, profile.cache_type_v, "KV cache type")
    if profile.flash_attention == "off" and profile.cache_type_v not in PLAIN_CACHE_TYPES:
        raise _refuse(f"A V cache of {profile.cache_type_v} needs flash attention, which is off.")
    params.no_perf = True
    return params


def generation_params(context_length: int, profile: RuntimeProfile) -> Any:
    """Give the parameters of a context for generation; raises EngineError."""
    params = base_params(profile)
    num_tokens = profile.max_step_tokens
    params.n_ctx = profile.context_cells(context_length)
    params.n_batch = num_tokens
    params.n_ubatch = min(num_tokens, PHYSICAL_BATCH)
    params.n_seq_max = profile.num_slots
    params.n_outputs_max = profile.max_step_rows
    params.kv_unified = profile.is_kv_unified
    if profile.is_deterministic:
        _make_deterministic(params, profile)
    return params


def _make_deterministic(params: Any, profile: RuntimeProfile) -> None:
    """Choose what computes a sequence alike whatever runs beside it."""
    if profile.is_kv_unified:
        raise _refuse("A deterministic deployment cannot have a unified KV cache.")
    if not profile.may_fuse_attention:
        params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED


def start_numa(profile: RuntimeProfile) -> None:
    """Tell llama.cpp how to use memory nodes, before anything is loaded; raises EngineError."""
    strategy = _choose(_NUMA, profile.numa, "NUMA strategy")
    if strategy != llama_cpp.GGML_NUMA_STRATEGY_DISABLED:
        llama_cpp.llama_numa_init(strategy)


def num_cores() -> int:
    """Count the cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _choose(known: dict[str, int], name: str, what: str) -> int:
    if name not in known:
        names = ", ".join(name for name in known if name)
        raise _refuse(f"Unknown {what} '{name}'; known are {names}.")
    return int(known[name])


def _refuse(reason: str) -> EngineError:
    return EngineError(ErrorCode.ENGINE_FAILED, reason)
