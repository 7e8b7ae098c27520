"""The threads of a gateway, for what blocks: parsing, and the database."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

Result = TypeVar("Result")
# Few: they hold the interpreter's lock most of the time, and each may hold a database connection.
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="prepare")


async def run_in_thread(
    call: Callable[[], Result], threads: ThreadPoolExecutor | None = None
) -> Result:
    """Run what blocks, in threads of its own where it may block for long.

    Its database connections are given back, so that a stream holds none.
    """
    run = sync_to_async(_run, thread_sensitive=False, executor=threads or _threads)
    return await run(call)


def _run(call: Callable[[], Result]) -> Result:
    try:
        return call()
    finally:
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close()
