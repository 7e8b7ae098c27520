"""The threads of a gateway, for what blocks: parsing, and the database."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest

Result = TypeVar("Result")
# Few: they hold the interpreter's lock most of the time, and each may hold a database connection.
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="prepare")
slow_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="slow")
"""For what may take a second: forms of answers become grammars, megabytes are read."""
MAX_QUICK_BYTES = 64 * 1024
SLOW_FIELDS = (
    "grammar",
    "json_schema",
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "tools",
    "functions",
)
_SLOW_WORDS = tuple(name.encode() for name in SLOW_FIELDS)
# A key may be written with escapes, and so get past ``choose_threads``.
compiling = BoundedSemaphore(2)
"""Held while a grammar is made, so that no more threads than two are busy with that."""


def choose_threads(request: HttpRequest) -> ThreadPoolExecutor | None:
    """Tell where a request is to be validated: what may take long must hold up nothing else."""
    if request.method != "POST" or request.content_type != "application/json":
        return None
    body = request.body
    if len(body) > MAX_QUICK_BYTES or any(word in body for word in _SLOW_WORDS):
        return slow_threads
    return None


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
