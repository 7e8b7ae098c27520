"""One answer for one ``Idempotency-Key``: made once, then repeated, whichever gateway is asked.

The first request with a key claims its answer. What it makes outlives its client: a whole answer
is kept, a stream is a run that anybody may follow. Others with the same key wait for it. A claim
ends with its gateway, and whoever waits makes the answer then. Failures are not kept.
"""

import asyncio
import logging
import re
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Protocol, cast

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.crypto import salted_hmac

from inference.protocol.errors import EngineError
from inference.relay.answers import CLAIM_SECONDS, AnswerBounds, AnswerState, Claim
from llamero import dispatch
from llamero.accounts.selectors import Caller
from llamero.api.resuming import IDEMPOTENCY_HEADER
from llamero.errors import InvalidValue, LlameroError

logger = logging.getLogger(__name__)

REPLAYED_HEADER = "Idempotent-Replayed"
MAX_WAITING = 16
"""How many requests of one owner may wait in one gateway for answers that others make."""
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.05, 1.0
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_SALT = "llamero.api.idempotency"

_num_waiting: Counter[str] = Counter()
_makers: set[asyncio.Task[Any]] = set()


class KeptAnswer(msgspec.Struct, frozen=True):
    """A whole answer."""

    status: int
    content_type: str
    body: bytes


class Repeatable(Protocol):
    """A view that tells a stream again to whoever repeats its request."""

    async def name_stream(self, response: StreamingHttpResponse) -> str | None:
        """Give the name by which a stream can be told again; None as long as it cannot."""

    async def tell_again(self, name: str) -> HttpResponseBase:
        """Tell a stream from its first event on; raises LlameroError 404 if it is known no more."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeptAnswer).decode


def read_claim(request: HttpRequest, caller: Any, body_digest: bytes | None = None) -> Claim | None:
    """Give the claim that a request makes; None for one without a key.

    Neither the key nor the body can be read out of it. Hashing a large body takes milliseconds;
    ``body_digest`` stands for one that was hashed as it came.
    """
    key = request.headers.get(IDEMPOTENCY_HEADER)
    if key is None or request.method != "POST" or not isinstance(caller, Caller):
        return None
    if not _KEY.fullmatch(key):
        message = (
            f"{IDEMPOTENCY_HEADER} must be 1 to 255 printable ASCII characters without blanks."
        )
        raise InvalidValue(IDEMPOTENCY_HEADER, message)
    head = f"{request.method} {request.get_full_path()}\n".encode()
    return Claim(
        owner=caller.owner,
        name=_digest(key.encode())[:32],
        fingerprint=_digest(head + (request.body if body_digest is None else body_digest)),
        holder=secrets.token_hex(8),
    )


async def answer_once(
    claim: Claim, view: Repeatable, answer: Callable[[], Awaitable[HttpResponseBase]]
) -> HttpResponseBase:
    """Give the one answer of a claim: by ``answer``, or as it was given before."""
    known = await _find_or_claim(claim, view)
    if known is not None:
        known[REPLAYED_HEADER] = "true"
        return known
    making = asyncio.get_running_loop().create_task(_make(claim, view, answer))
    _makers.add(making)
    making.add_done_callback(_makers.discard)
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        # The client left, and may come back for what is being made.
        making.add_done_callback(_let_go)
        raise


async def _find_or_claim(claim: Claim, view: Repeatable) -> HttpResponseBase | None:
    """Give what there is already, waiting for it while another request makes it; or claim it."""
    answers = dispatch.get_dispatcher().answers
    lost, pause = "", FIRST_LOOK_SECONDS
    with _Turn(claim.owner) as turn:
        while True:
            found = await answers.claim(claim, lost)
            match found.state:
                case AnswerState.YOURS:
                    return None
                case AnswerState.OTHER:
                    raise _key_reused()
                case AnswerState.KEPT:
                    return _respond(found.value)
                case AnswerState.TOLD:
                    lost = found.value.decode()
                    told = await _tell_again(view, lost)
                    if told is not None:
                        return told
                case AnswerState.CLAIMED:
                    turn.begin()
                    await asyncio.sleep(pause)
                    pause = min(1.5 * pause, LONGEST_LOOK_SECONDS)


class _Turn:
    """A place among those of an owner who wait here."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._is_waiting = False

    def __enter__(self) -> "_Turn":
        return self

    def begin(self) -> None:
        """Begin to wait; raises LlameroError where too many do."""
        if self._is_waiting:
            return
        if _num_waiting[self._owner] >= MAX_WAITING:
            raise LlameroError(
                409,
                "idempotency_key_in_use",
                f"A request with this {IDEMPOTENCY_HEADER} is being answered. Try again later.",
                param=IDEMPOTENCY_HEADER,
                error_type="invalid_request_error",
                retry_after=2.0,
            )
        self._is_waiting = True
        _num_waiting[self._owner] += 1

    def __exit__(self, *_: object) -> None:
        if self._is_waiting:
            _num_waiting[self._owner] -= 1
            if not _num_waiting[self._owner]:
                del _num_waiting[self._owner]


async def _make(
    claim: Claim, view: Repeatable, answer: Callable[[], Awaitable[HttpResponseBase]]
) -> HttpResponseBase:
    """Make the answer and keep it. Whatever fails gives the claim up."""
    renewing = asyncio.get_running_loop().create_task(_renew(claim))
    is_settled = False
    try:
        response = await answer()
        if isinstance(response, StreamingHttpResponse):
            is_settled = True
            if not await _point_to(claim, view, response):
                # The model is being loaded: there is nothing to follow yet.
                parts = aiter(response)
                response.streaming_content = _point_when_begun(claim, view, response, parts)
        elif isinstance(response, HttpResponse) and response.status_code < 300:
            is_settled = await _keep(claim, response)
        return response
    finally:
        renewing.cancel()
        if not is_settled:
            await _quietly(dispatch.get_dispatcher().answers.give_up(claim))


async def _renew(claim: Claim) -> None:
    """Hold a claim until cancelled."""
    while True:
        await asyncio.sleep(CLAIM_SECONDS / 4)
        await _quietly(dispatch.get_dispatcher().answers.claim(claim))


async def _keep(claim: Claim, response: HttpResponse) -> bool:
    """Keep a whole answer unless it is larger than all of an owner's may be."""
    kept = _encode(KeptAnswer(response.status_code, response["Content-Type"], response.content))
    bounds = _bounds()
    if len(kept) > bounds.max_bytes:
        return False
    return bool(await _quietly(dispatch.get_dispatcher().answers.keep(claim, kept, bounds)))


async def _point_to(claim: Claim, view: Repeatable, response: StreamingHttpResponse) -> bool:
    """Have others with the key follow a stream, if it can be followed yet."""
    name = await _quietly(view.name_stream(response))
    if name is None:
        return False
    answers = dispatch.get_dispatcher().answers
    return bool(await _quietly(answers.point_to(claim, name, _bounds())))


async def _point_when_begun(
    claim: Claim, view: Repeatable, response: StreamingHttpResponse, parts: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Pass a stream on, and have others follow it as soon as it can be followed."""

    async def wait_for_it() -> None:
        answers = dispatch.get_dispatcher().answers
        while not await _point_to(claim, view, response):
            await _quietly(answers.claim(claim))
            await asyncio.sleep(LONGEST_LOOK_SECONDS)

    waiting = asyncio.get_running_loop().create_task(wait_for_it())
    try:
        async with aclosing(cast("AsyncGenerator[bytes]", parts)) as open_parts:
            async for part in open_parts:
                yield part
    finally:
        waiting.cancel()
        if not await _point_to(claim, view, response):
            await _quietly(dispatch.get_dispatcher().answers.give_up(claim))


async def _tell_again(view: Repeatable, name: str) -> HttpResponseBase | None:
    """Tell a stream from its first event on; None where it is known no more."""
    try:
        return await view.tell_again(name)
    except LlameroError as error:
        if error.status != 404:
            raise
        return None


def _respond(raw: bytes) -> HttpResponse:
    kept = _decode(raw)
    return HttpResponse(kept.body, status=kept.status, content_type=kept.content_type)


def _let_go(made: asyncio.Task[HttpResponseBase]) -> None:
    """See to an answer that nobody waits for: its failure is told to nobody, its stream closed."""
    if made.cancelled() or made.exception() is not None:
        return
    response = made.result()
    if isinstance(response, StreamingHttpResponse):
        closing = asyncio.get_running_loop().create_task(_close(response))
        _makers.add(closing)
        closing.add_done_callback(_makers.discard)


async def _close(response: StreamingHttpResponse) -> None:
    """Close a stream that nobody reads: a generator cleans up only what it has begun."""
    async with aclosing(cast("AsyncGenerator[bytes]", aiter(response))) as parts:
        await anext(parts, b"")


async def _quietly(call: Awaitable[Any]) -> Any:
    """Do without the server: the answer is what matters. None where it was not there."""
    try:
        return await call
    except EngineError as error:
        logger.warning("An answer could not be kept for its key: %s", error.message)
        return None


def _bounds() -> AnswerBounds:
    return AnswerBounds(
        seconds=settings.IDEMPOTENCY_SECONDS,
        max_answers=settings.IDEMPOTENCY_ANSWERS,
        max_bytes=settings.IDEMPOTENCY_BYTES,
    )


def _key_reused() -> LlameroError:
    return LlameroError(
        422,
        "idempotency_key_reused",
        f"This {IDEMPOTENCY_HEADER} came with another request before. Use a new one for each.",
        param=IDEMPOTENCY_HEADER,
        error_type="invalid_request_error",
    )


def _digest(value: bytes) -> str:
    return salted_hmac(_SALT, value, algorithm="sha256").hexdigest()
