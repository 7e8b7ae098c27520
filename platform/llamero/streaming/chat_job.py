"""One chat on a socket, from the frame that starts or resumes it to its last frame."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from inference.protocol import events
from inference.protocol.errors import ErrorCode
from llamero.accounts.selectors import Caller
from llamero.api.errors import from_failed
from llamero.api.run import QueuePlace, opening_a_run
from llamero.api.sse import QUEUE_SECONDS
from llamero.api.turn import TurnFormat
from llamero.streaming import frames
from llamero.streaming.opening import Chat, TellLoading
from llamero.streaming.turn_frames import NOTHING_DONE, TurnFrames

logger = logging.getLogger(__name__)

# How long a cancelled chat waits for the worker's own word of its end.
CANCEL_GRACE_SECONDS = 3.0
SILENCE_SECONDS = 60.0

# The event loop keeps no strong reference to a task.
_closing: set[asyncio.Future[None]] = set()


class ChatJob:
    """Opens a chat and turns its events into frames. Each run ends in exactly one done or error.

    Of a chat that is resumed the first ``num_known`` frames of its answer are not told again, nor
    what came before them; of a new one it is None.
    """

    def __init__(
        self,
        job_id: str,
        open_chat: Callable[[Caller, TellLoading], Awaitable[Chat]],
        send: Callable[[frames.ServerFrame], Awaitable[None]],
        num_known: int | None = None,
    ) -> None:
        self._id = job_id
        self._open_chat = open_chat
        self._send = send
        self._is_new = num_known is None
        self._num_known = num_known or 0
        self._answer = TurnFrames(job_id, TurnFormat(), 0)
        self._model = ""
        self._place: QueuePlace | None = None
        self._is_cancelled = False
        self._opening: asyncio.Task[Chat] | None = None
        self._chat: Chat | None = None
        self._limit = asyncio.timeout(None)

    async def run(self, caller: Caller) -> None:
        """Run to the end; being cancelled (the socket is gone) frees the slot at once.

        But a chat that may be resumed goes on.
        Raises what the REST view would raise, if the chat cannot be opened.
        """
        chat = await self._open(caller)
        if chat is None:
            await self._tell(NOTHING_DONE)
            return
        try:
            await self._follow(chat)
        finally:
            await asyncio.shield(chat.run.close())

    async def cancel(self) -> None:
        """End the chat, whether it is being opened, waits or runs. Its end still comes."""
        if self._is_cancelled:
            return
        self._is_cancelled = True
        if self._chat is not None:
            await self._stop(self._chat)
        elif self._opening is not None and self._is_new:
            self._opening.cancel()

    async def _open(self, caller: Caller) -> Chat | None:
        """Open the chat; None if it was cancelled meanwhile."""
        if self._is_cancelled and self._is_new:
            return None
        self._opening = asyncio.ensure_future(self._open_chat(caller, self._tell_loading))
        try:
            with opening_a_run():
                return await self._opening
        except asyncio.CancelledError:
            self._opening.add_done_callback(_leave)
            task = asyncio.current_task()
            if not self._is_cancelled or (task is not None and task.cancelling()):
                raise
            return None

    async def _follow(self, chat: Chat) -> None:
        self._model = chat.model
        self._answer = TurnFrames(self._id, chat.turn, self._num_known)
        try:
            async with self._limit:
                self._chat = chat
                await self._begin(chat)
                if self._is_cancelled:
                    await self._stop(chat)
                while not chat.run.is_finished:
                    await self._tell_next(chat)
        except TimeoutError:
            logger.warning("Chat %s heard nothing of its end after it was cancelled", self._id)
            await self._tell(NOTHING_DONE)

    async def _stop(self, chat: Chat) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time() + CANCEL_GRACE_SECONDS)
        await chat.run.cancel()

    async def _begin(self, chat: Chat) -> None:
        if chat.is_resumed and chat.run_id is not None:
            await self._send(frames.Resumed(self._id, chat.model, chat.run_id))
        else:
            await self._tell_place(chat)

    async def _tell_next(self, chat: Chat) -> None:
        """Tell what comes next, or, of a chat that waits, its place."""
        is_waiting = chat.run.is_waiting
        told = await chat.run.next_events(QUEUE_SECONDS if is_waiting else SILENCE_SECONDS)
        for _, event in told:
            await self._tell(event)
        if not told and is_waiting:
            await self._tell_place(chat)

    async def _tell_loading(self, model: str, progress: float) -> None:
        await self._send(frames.Loading(self._id, model, progress))

    async def _tell_place(self, chat: Chat) -> None:
        place = chat.run.queue_place
        if place is not None and place != self._place:
            self._place = place
            await self._send(frames.Queued(self._id, chat.model, *place, run=chat.run_id))

    async def _tell(self, event: events.Event) -> None:
        for frame in self._frames_of(event):
            await self._send(frame)

    def _frames_of(self, event: events.Event) -> list[frames.ServerFrame]:
        match event:
            case events.Started() | events.Progress() if self._answer.is_known:
                return []
            case events.Started():
                return [frames.Started(self._id, self._model, event.num_cached_tokens)]
            case events.Progress():
                return [frames.Progress(self._id, event.num_processed, event.num_prompt_tokens)]
            case events.Tokens():
                return self._answer.tell(event)
            case events.Done():
                return self._answer.end(event)
            case events.Failed(code=ErrorCode.REQUEST_CANCELLED):
                return self._answer.end(NOTHING_DONE)
            case events.Failed():
                return [frames.describe_error(from_failed(event), self._id)]
        return []


def _leave(opening: asyncio.Task[Chat]) -> None:
    """Let go of a chat that had just been opened when its task was cancelled."""
    if not opening.cancelled() and opening.exception() is None:
        closing = asyncio.ensure_future(_let_go(opening.result()))
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)


async def _let_go(chat: Chat) -> None:
    """Stop a new chat, whose caller was never told how to resume it; others go on."""
    if not chat.is_resumed:
        await chat.run.cancel()
    await chat.run.close()
