"""May this process lock a model in memory? llama.cpp only warns when it may not."""

import os
import resource
from collections.abc import Iterable
from pathlib import Path

from inference.protocol.errors import EngineError, ErrorCode

_CAP_IPC_LOCK = 14


def allow_memory_lock(files: Iterable[str]) -> None:
    """Raise the limit of locked memory for these files; raises EngineError where it is too low."""
    needed = sum(Path(name).stat().st_size for name in files)
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if _may_lock_anything() or _holds(soft, needed):
        return
    if _holds(hard, needed):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
        return
    raise EngineError(
        ErrorCode.ENGINE_FAILED,
        f"The weights cannot be locked in memory: that takes {_mib(needed)} MiB, and this user "
        f"may lock {_mib(hard)} MiB. Raise the limit (ulimit -l, or LimitMEMLOCK of the service), "
        "or turn “lock in memory” off.",
    )


def _holds(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed


def _mib(num_bytes: int) -> int:
    return -(-num_bytes // 2**20)


def _may_lock_anything() -> bool:
    """Tell whether limits do not count for this process, as for root outside a container."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return os.geteuid() == 0
    sets = [line.split()[1] for line in lines if line.startswith("CapEff:")]
    return any(int(bits, 16) >> _CAP_IPC_LOCK & 1 for bits in sets)
