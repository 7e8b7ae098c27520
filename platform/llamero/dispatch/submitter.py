"""How does a job come in, whatever happens to its submitter or the server meanwhile?"""

import asyncio
from collections.abc import Callable

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import Job
from inference.relay.gateway import Admission, GatewayRelay
from inference.relay.limits import Meter, Stake
from llamero.dispatch.farewells import Farewells
from llamero.dispatch.followed import Followed
from llamero.dispatch.stream import JobStream
from llamero.dispatch.tickets import TicketOffice
from llamero.dispatch.watcher import Watcher


class Submitter:
    """Queues jobs that are followed from before they are known to the server."""

    def __init__(
        self,
        relay: GatewayRelay,
        streams: Followed,
        follow: Callable[[Job], JobStream],
        *,
        farewells: Farewells,
        tickets: TicketOffice,
        watcher: Watcher,
    ) -> None:
        self._relay, self._streams, self._follow = relay, streams, follow
        self._farewells, self._tickets, self._watcher = farewells, tickets, watcher

    async def submit(
        self,
        job: Job,
        max_queue: int,
        max_owner_queue: int | None,
        bill: bytes,
        stake: Stake | None,
        meter: Meter | None,
    ) -> JobStream:
        """Queue a job and follow it; raises as ``Dispatcher.submit`` does."""
        # Known here before it is known there: its first event may come before the answer.
        stream = self._follow(job)
        submission = self._relay.submit(
            job,
            max_queue=max_queue,
            max_owner_queue=max_owner_queue,
            bill=bill,
            stake=stake,
            meter=meter,
        )
        call = asyncio.get_running_loop().create_task(submission)
        try:
            admission = await asyncio.shield(call)
        except asyncio.CancelledError:
            call.add_done_callback(lambda done: self._forsake(stream, done))
            raise
        except EngineError as error:
            self._streams.discard(stream)
            if error.code is ErrorCode.BROKER_UNAVAILABLE:
                # The server may have read the call all the same.
                self._farewells.cancel(job, is_abandoned=True)
            raise
        stream.num_ahead, stream.wait_seconds = admission.num_ahead, admission.wait_seconds
        stream.readings = admission.readings
        stream.is_submitted = True
        if admission.ticket_for:
            self._tickets.send(admission.ticket_for)
        if admission.has_spare:
            self._watcher.expect_start(stream)
        return stream

    def _forsake(self, stream: JobStream, call: asyncio.Task[Admission]) -> None:
        """Take back a job whose submitter left before the answer came."""
        self._streams.discard(stream)
        if not call.cancelled():
            call.exception()
        self._farewells.cancel(stream.job, is_abandoned=True)
