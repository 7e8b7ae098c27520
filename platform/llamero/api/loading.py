"""Streams of a model that is not loaded: signs of life while it loads, then the answer."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from time import monotonic
from typing import cast

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase

from inference.protocol.errors import EngineError, ErrorCode
from llamero import dispatch
from llamero.api.errors import describe_exception
from llamero.api.run import opening_a_run
from llamero.api.run_names import conversation_of
from llamero.api.sse import PATIENCE_SECONDS, QUEUE_SECONDS, respond
from llamero.errors import LlameroError


async def stream_when_ready(
    deployment: str,
    answer: Callable[[], Awaitable[HttpResponseBase]],
    *,
    fail: Callable[[LlameroError], bytes],
    run_id: str | None = None,
) -> HttpResponseBase:
    """Give the streamed answer of ``answer``, which needs a ready replica.

    Where that takes long the stream begins before: then what fails is told as an event by ``fail``.
    ``run_id`` is what it will be resumed by, if it may be.
    """
    if await is_ready(deployment):
        return await answer()
    loading = watch_loading(deployment)
    begins_at = monotonic() + PATIENCE_SECONDS
    async for progress in loading:
        if monotonic() >= begins_at:
            body = _body(loading, progress, answer, fail)
            return respond(body if conversation_of(run_id) is None else _mute(body), run_id)
    return await answer()


async def is_ready(deployment: str) -> bool:
    """Whether a replica serves; raises EngineError where nobody can tell."""
    try:
        await dispatch.get_dispatcher().facts(deployment, waits=False)
    except EngineError as error:
        if error.code is not ErrorCode.NO_READY_REPLICA:
            raise
        return False
    return True


async def watch_loading(deployment: str) -> AsyncIterator[float]:
    """Have a deployment loaded: give the loaded share every few seconds until it is ready.

    Raises EngineError when there is no hope of it.
    """
    dispatcher = dispatch.get_dispatcher()
    waking = asyncio.ensure_future(dispatcher.facts(deployment))
    try:
        while not (await asyncio.wait((waking,), timeout=QUEUE_SECONDS))[0]:
            replicas = await dispatcher.replicas(deployment)
            yield max((one.progress for one in replicas if one.state.is_coming), default=0.0)
        waking.result()
    finally:
        waking.cancel()


async def _mute(body: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """Leave the signs of life out, for readers that count bytes."""
    async with aclosing(body):
        async for part in body:
            if not part.startswith(b":"):
                yield part


async def _body(
    loading: AsyncIterator[float],
    progress: float,
    answer: Callable[[], Awaitable[HttpResponseBase]],
    fail: Callable[[LlameroError], bytes],
) -> AsyncGenerator[bytes]:
    """Tell how far the model is, then pass on its answer."""
    try:
        with opening_a_run():
            yield _sign_of_life(progress)
            async for share in loading:
                yield _sign_of_life(share)
            response = await answer()
        assert isinstance(response, StreamingHttpResponse)
        async with aclosing(cast("AsyncGenerator[bytes]", aiter(response))) as parts:
            async for part in parts:
                yield part
    except Exception as error:
        yield fail(describe_exception(error))


def _sign_of_life(progress: float) -> bytes:
    return f": loading progress={progress:.2f}\n\n".encode()
