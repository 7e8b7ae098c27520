"""What ends when an owner may call no more: streams at once, and whatever else they have open."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from django.conf import settings
from django.utils.module_loading import import_string

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Failed
from llamero.dispatch.farewells import Farewells
from llamero.dispatch.followed import Followed

logger = logging.getLogger(__name__)
REVIEW_SECONDS = 1.0
REVOKED_EVENT = Failed(ErrorCode.KEY_REVOKED, "This key or session is no longer valid.")
EXPIRED_EVENT = Failed(ErrorCode.TOKEN_EXPIRED, "This token has expired.")
Review = Callable[[frozenset[str]], Awaitable[frozenset[str]]]


class Rights:
    """Reviews owners when a message names them, and each second all that have something open.

    A message only wakes: who lost the right is for ``settings.OWNER_REVIEW`` to say. So a message
    that was lost costs a second, and one that is wrong costs nothing.
    """

    def __init__(self, streams: Followed, farewells: Farewells) -> None:
        self._streams = streams
        self._farewells = farewells
        self._followers: dict[str, set[Callable[[], None]]] = {}
        self._named: set[str] = set()
        self._wake = asyncio.Event()
        self._is_idle = True

    def follow(self, owner: str, end: Callable[[], None]) -> Callable[[], None]:
        """Have a function called, at once and briefly, when an owner may call no more.

        Give what takes that back.
        """
        self._followers.setdefault(owner, set()).add(end)
        self.start_watching()

        def leave() -> None:
            followers = self._followers.get(owner, set())
            followers.discard(end)
            if not followers:
                self._followers.pop(owner, None)

        return leave

    def start_watching(self) -> None:
        """Note that there is something open."""
        if self._is_idle:
            self._wake.set()

    def name(self, owners: frozenset[str]) -> None:
        """Have owners reviewed now."""
        self._named |= owners
        self._wake.set()

    async def run(self) -> None:
        """Review until cancelled."""
        review: Review = import_string(settings.OWNER_REVIEW)
        while True:
            if not await self._wait():
                continue
            self._end_expired(time.time())
            owners = self._open_owners() | self._named
            self._named.clear()
            try:
                lost = await review(owners)
            except Exception as error:
                # A database that is away, mostly. Who has something open is asked about again.
                logger.warning("Nobody could say who may still call: %s", error)
                await asyncio.sleep(REVIEW_SECONDS)
            else:
                self._end(lost)

    async def _wait(self) -> bool:
        """Wait until owners are named; while anything is open, for a moment at most.

        False where something has just been opened, by somebody who has just been looked at.
        """
        self._is_idle = not self._open_owners()
        try:
            async with asyncio.timeout(None if self._is_idle else REVIEW_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            return True
        self._wake.clear()
        return bool(self._named)

    def _open_owners(self) -> frozenset[str]:
        streaming = {stream.job.owner for stream in self._streams if not stream.is_ended}
        return frozenset(streaming | self._followers.keys())

    def _end_expired(self, now: float) -> None:
        """End what is read with a token that has ended; durable work waits for the next one."""
        for stream in tuple(self._streams):
            ends_at = stream.reader_ends_at
            if ends_at is None or ends_at > now or stream.is_ended:
                continue
            stream.end(EXPIRED_EVENT)
            if not stream.is_durable:
                self._farewells.cancel(stream.job, is_abandoned=True)

    def _end(self, lost: frozenset[str]) -> None:
        for stream in tuple(self._streams):
            if stream.job.owner in lost and not stream.is_ended:
                stream.end(REVOKED_EVENT)
                self._farewells.cancel(stream.job, is_abandoned=True)
        for owner in lost:
            for end in tuple(self._followers.get(owner, ())):
                end()
