"""When keys were used: noted in passing, written behind the back of requests."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from channels.db import database_sync_to_async
from django.db import DatabaseError, InterfaceError
from django.db.models import Q

from llamero.accounts.key_text import newest_pepper, seal
from llamero.accounts.models import ApiKey

logger = logging.getLogger(__name__)
STEP = timedelta(minutes=1)
WRITE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a key; ``digest`` is what to seal it as anew, in place of ``old_digest``."""

    at: datetime
    old_digest: str = ""
    digest: str = ""


class Uses:
    """Uses that wait to be written, one a key; safe between threads.

    A key that is sealed under an old pepper is sealed anew with its use, so that old peppers run
    out of keys. What a process that ends has not written is lost: a use of the last seconds.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, _Use] = {}
        self._timers: dict[asyncio.AbstractEventLoop, asyncio.TimerHandle] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def note(self, key: ApiKey, key_text: str, now: datetime) -> None:
        """Note that a key was used, if that is news."""
        newest, pepper, digest = newest_pepper(), key.pepper, key.digest
        if digest and pepper not in (None, newest) and digest == seal(key_text, pepper):
            self._waiting[key.pk] = _Use(now, digest, seal(key_text, newest))
        elif key.last_used_at is None or key.last_used_at <= now - STEP:
            self._waiting.setdefault(key.pk, _Use(now))

    def write(self) -> None:
        """Write what waits, the time at most once a minute whatever the number of processes."""
        taken, self._waiting = self._waiting, {}
        # Copied: a thread that has just looked the other one up may still put into it.
        waiting = dict(taken)
        try:
            for pk, use in waiting.items():
                if use.digest:
                    sealed = ApiKey.objects.filter(pk=pk, digest=use.old_digest)
                    sealed.update(digest=use.digest, pepper=newest_pepper())
            if waiting:
                last = max(use.at for use in waiting.values())
                is_due = Q(last_used_at__isnull=True) | Q(last_used_at__lte=last - STEP)
                ApiKey.objects.filter(is_due, pk__in=waiting).update(last_used_at=last)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The uses of %d keys cannot be written yet: %s", len(waiting), error)
            self._waiting = waiting | self._waiting

    def write_soon(self) -> None:
        """Have what waits written in a moment; called on the event loop, after each request."""
        loop = asyncio.get_running_loop()
        if not self._waiting or loop in self._timers:
            return
        for closed in [known for known in self._timers if known.is_closed()]:
            del self._timers[closed]
        self._timers[loop] = loop.call_later(WRITE_SECONDS, self._start, loop)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        del self._timers[loop]
        task = loop.create_task(database_sync_to_async(self.write)())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)


uses = Uses()
