"""The chat socket: who may use it, which chats run on it, and how it ends."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import uuid4

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError, InterfaceError, OperationalError
from rest_framework.exceptions import PermissionDenied

from llamero import dispatch
from llamero.accounts.permissions import check_scope
from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller
from llamero.accounts.tokens.refusals import TokenRefused
from llamero.accounts.wrong_keys import refuse_wrong_key
from llamero.api.errors import describe_exception
from llamero.errors import InvalidValue, LlameroError
from llamero.streaming import frames
from llamero.streaming.callers import (
    SUBPROTOCOL,
    Identity,
    identify_by_key,
    identify_by_session,
    identify_by_ticket,
    read_address,
    read_offered_key,
    read_offered_ticket,
    read_session_key,
)
from llamero.streaming.chat_job import ChatJob
from llamero.streaming.opening import Chat, TellLoading, open_chat, resume_chat
from llamero.streaming.origins import has_allowed_host, has_own_origin

logger = logging.getLogger(__name__)

NO_SUCH_PATH = 4404
# By the status of the error that is told before.
CLOSE_CODES = {401: 4401, 403: 4403, 429: 4429, 503: 4503}
AUTH_TIMEOUT_SECONDS = 5.0
RECHECK_SECONDS = 3.0
UNKNOWN_CALLER = LlameroError(401, "invalid_api_key", "Sign in, or give a valid API key.")
REVOKED = LlameroError(401, "key_revoked", "This key or session is no longer valid.")
EXPIRED = LlameroError(401, "token_expired", "This token has expired.")


class ChatConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Several chats on one socket; closing the socket ends those that cannot be resumed."""

    def __init__(self) -> None:
        super().__init__()
        self._identity: Identity | None = None
        self._jobs: dict[str, ChatJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._leave: Callable[[], None] = lambda: None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one socket; nothing it started outlives it, whatever ends it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()
            for task in self._tasks:
                task.cancel()

    async def connect(self) -> None:
        """Let the caller in, turn them away, or accept and wait for an auth frame."""
        if not has_allowed_host(self.scope):
            await self.close()
            return
        key, ticket = read_offered_key(self.scope), read_offered_ticket(self.scope)
        session_key = None
        if key is None and ticket is None:
            session_key = read_session_key(self.scope)
        # A cookie is sent by whatever page asks: it counts only for pages of our own.
        if session_key is not None and not has_own_origin(self.scope):
            await self.close()
            return
        offered = self.scope.get("subprotocols", ())
        await self.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        if key is not None:
            await self._enter_by_key(key)
        elif ticket is not None:
            await self._enter(identify_by_ticket(ticket, read_address(self.scope)))
        elif session_key is not None:
            await self._welcome(await identify_by_session(session_key))
        else:
            self._spawn(self._close_unless_known())

    async def disconnect(self, code: int) -> None:
        """End every chat and wait until their slots are free."""
        self._is_closing = True
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Act on one frame; a bad one is answered with an error and changes nothing."""
        if self._is_closing:
            return
        try:
            if text_data is None:
                raise InvalidValue(None, "Frames are text, not binary.", "binary_frame")
            frame = frames.read_frame(text_data)
            if self._identity is None:
                await self._authenticate(frame)
            else:
                await self._act(frame, self._identity)
        except LlameroError as error:
            if self._identity is None:
                await self._refuse(UNKNOWN_CALLER)
            else:
                await self._send_frame(frames.describe_error(error))

    async def _act(self, frame: frames.ClientFrame, identity: Identity) -> None:
        match frame:
            case frames.StartFrame():
                opening = partial(
                    open_chat, frame.body, is_resumable=frame.is_resumable, run_id=frame.run
                )
                await self._start(frame.id, opening, identity)
            case frames.ResumeFrame():
                run_id = frame.run
                await self._start(
                    frame.id,
                    lambda caller, _: resume_chat(run_id, caller),
                    identity,
                    num_known=frame.after,
                )
            case frames.CancelFrame():
                job = self._jobs.get(frame.id)
                if job is None:
                    raise InvalidValue("id", "No chat of this id is running.", "unknown_id")
                await job.cancel()
            case frames.PingFrame():
                await self._send_frame(frames.Pong())
            case frames.AuthFrame():
                raise InvalidValue("type", "The caller is known already.")

    async def _start(
        self,
        wanted_id: str | None,
        opening: Callable[[Caller, TellLoading], Awaitable[Chat]],
        identity: Identity,
        *,
        num_known: int | None = None,
    ) -> None:
        job_id = wanted_id or uuid4().hex
        if job_id in self._jobs:
            raise InvalidValue("id", "A chat of this id is running.", "id_in_use")
        if len(self._jobs) >= frames.MAX_JOBS:
            message = f"At most {frames.MAX_JOBS} chats may run on one socket."
            refusal = LlameroError(429, "too_many_jobs", message, param="id")
            await self._send_frame(frames.describe_error(refusal, job_id))
            return
        job = ChatJob(job_id, opening, self._send_frame, num_known)
        self._jobs[job_id] = job
        self._spawn(self._run_job(job_id, job, identity))

    async def _run_job(self, job_id: str, job: ChatJob, identity: Identity) -> None:
        try:
            caller = await identity.renew()
            if caller is None:
                await self._refuse(REVOKED)
            else:
                check_scope(caller, Scope.INFERENCE)
                await job.run(caller)
        except Exception as error:
            await self._send_frame(frames.describe_error(describe_exception(error), job_id))
        finally:
            del self._jobs[job_id]

    async def _authenticate(self, frame: frames.ClientFrame) -> None:
        if isinstance(frame, frames.AuthFrame):
            await self._enter_by_key(frame.key)
        else:
            await self._refuse(UNKNOWN_CALLER)

    async def _enter_by_key(self, key: str) -> None:
        await self._enter(identify_by_key(key, read_address(self.scope)))

    async def _enter(self, identifying: Awaitable[Identity | None]) -> None:
        """Let somebody in by what they show; an address with much that is wrong has to wait."""
        address, refusal = read_address(self.scope), UNKNOWN_CALLER
        try:
            identity = await identifying
        except (TokenRefused, LlameroError, OperationalError, InterfaceError) as error:
            identity, refusal = None, describe_exception(error)
        if identity is not None:
            await self._welcome(identity)
        elif refusal.status == 401:
            await self._refuse(await refuse_wrong_key(address) or refusal)
        else:
            await self._refuse(refusal)

    async def _welcome(self, identity: Identity | None) -> None:
        if identity is None:
            await self._refuse(UNKNOWN_CALLER)
            return
        try:
            check_scope(identity.caller, Scope.INFERENCE)
        except PermissionDenied as error:
            await self._refuse(describe_exception(error))
            return
        self._identity = identity
        rights = dispatch.get_dispatcher().rights
        self._leave = rights.follow(identity.caller.owner, self._lose_rights)
        if identity.caller.key_id is None:
            self._spawn(self._watch(identity))
        if identity.caller.ends_at is not None:
            self._spawn(self._end_at(identity.caller.ends_at))
        await self._send_frame(frames.Hello())

    def _lose_rights(self) -> None:
        """Say so, and end all that runs."""
        self._spawn(self._refuse(REVOKED))

    async def _watch(self, identity: Identity) -> None:
        """End running chats soon after a session has ended, of which nobody is told."""
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            try:
                is_revoked = bool(self._jobs) and await identity.renew() is None
            except DatabaseError:
                logger.warning("The database did not say whether a caller is still allowed")
                continue
            if is_revoked:
                for job in tuple(self._jobs.values()):
                    await job.cancel()
                await self._refuse(REVOKED)
                return

    async def _end_at(self, ends_at: float) -> None:
        """End all that runs when a token expires."""
        await asyncio.sleep(ends_at - time.time())
        await self._refuse(EXPIRED)

    async def _close_unless_known(self) -> None:
        await asyncio.sleep(AUTH_TIMEOUT_SECONDS)
        if self._identity is None:
            await self._refuse(UNKNOWN_CALLER)

    async def _refuse(self, error: LlameroError) -> None:
        """Say why, close the socket, and end what runs on it."""
        if self._is_closing:
            return
        self._is_closing = True
        await self.send(text_data=frames.encode_frame(frames.describe_error(error)))
        await self.close(code=CLOSE_CODES[error.status])
        current = asyncio.current_task()
        for task in self._tasks - {current}:
            task.cancel()

    async def _send_frame(self, frame: frames.ServerFrame) -> None:
        if not self._is_closing:
            await self.send(text_data=frames.encode_frame(frame))

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("A task of a chat socket failed", exc_info=task.exception())


class UnknownPathConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Turns away sockets on paths that do not exist, without a traceback."""

    async def connect(self) -> None:
        """Refuse the handshake."""
        await self.close(code=NO_SUCH_PATH)
