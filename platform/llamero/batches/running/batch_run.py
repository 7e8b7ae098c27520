"""One batch from its file to its answers, as far as it gets; whoever comes next goes on from there.

Whatever goes wrong with the batch itself ends the run, and the runner begins it anew with what is
written. So there is one way to go on, after a restart as after an error.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils import timezone

from inference.protocol.jobs import IDLE_PRIORITY
from llamero.accounts.callers import read_grant
from llamero.accounts.selectors import Caller, find_key_caller
from llamero.api.model_choice import choose_model
from llamero.api.threads import run_in_thread
from llamero.batches import store
from llamero.batches.models import BatchState
from llamero.batches.running.answering import Answer, answer, kinds_for
from llamero.batches.running.gates import Gates
from llamero.batches.running.lines import Examined, LineReader, NumberedLine, examine
from llamero.batches.running.results import Result, ResultWriter, answered, finish, not_made
from llamero.batches.services import cancel_batch, claim_batch, move_on
from llamero.errors import LlameroError

# Results are written when so many are there, or so large, or so old.
WRITTEN_AT_ONCE = 16
WRITTEN_BYTES = 1 << 20
WRITTEN_AFTER_SECONDS = 2.0
CALLER_SECONDS = 1.0
MAX_DOUBTFUL_TRIES = 3
RETRY_SECONDS = 1.0
# Limits may be raised at any time.
LONGEST_LIMITED_SECONDS = 30.0
_GIVEN_UP_AT_ONCE = 500
_EXPIRED = ("batch_expired", "This request was not made before the batch expired.")
_CANCELLED = ("batch_cancelled", "This request was not made before the batch was cancelled.")


class Places:
    """Bounds how many batches are answered at once, and how many of one owner."""

    def __init__(self, most: int, most_of_owner: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._most_of_owner = most_of_owner
        self._owners: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def of(self, owner: str) -> AsyncIterator[None]:
        """Wait for a place, and have it."""
        own = self._owners.setdefault(owner, asyncio.Semaphore(self._most_of_owner))
        async with own, self._all:
            yield


class BatchRun:
    """Runs one batch. ``stop`` has it look again at what state it is in."""

    def __init__(self, batch_id: str, gates: Gates, places: Places, most: int) -> None:
        self._id = batch_id
        self._gates = gates
        self._places = places
        self._most = most
        self._stopping = asyncio.Event()
        self._results: list[Result] = []
        self._writing = asyncio.Lock()
        self._written_at = time.monotonic()

    def stop(self) -> None:
        """Let nothing more be begun: somebody wants it cancelled."""
        self._stopping.set()

    async def run(self) -> None:
        """Bring it to its end; raises BatchLost where it is somebody else's."""
        self._batch = batch = await run_in_thread(partial(claim_batch, batch_id=self._id))
        if batch.state == BatchState.VALIDATING:
            await self._validate()
        self._writer = ResultWriter(batch)
        if batch.state == BatchState.IN_PROGRESS:
            await self._answer_what_is_left()
        if batch.state == BatchState.IN_PROGRESS:
            if len(self._writer.done) == batch.num_total:
                await run_in_thread(partial(move_on, batch=batch, to=BatchState.FINALIZING))
            elif batch.expires_at <= timezone.now():
                await self._give_up(*_EXPIRED)
                await run_in_thread(partial(finish, batch, BatchState.EXPIRED))
        if batch.state == BatchState.CANCELLING:
            await self._give_up(*_CANCELLED)
            await run_in_thread(partial(finish, batch, BatchState.CANCELLED))
        if batch.state == BatchState.FINALIZING:
            await run_in_thread(partial(finish, batch, BatchState.COMPLETED))

    async def _validate(self) -> None:
        path = store.work_folder(self._id) / "input.jsonl"
        found = await run_in_thread(partial(examine, path, self._batch.endpoint))
        if not found.errors:
            await run_in_thread(partial(self._check_model, found))
        # A database takes no null characters; no model has them in its name.
        model = found.model.replace("\0", "\N{REPLACEMENT CHARACTER}")[:255]
        named: dict[str, Any] = {"batch": self._batch, "model": model}
        if not found.errors:
            to = BatchState.IN_PROGRESS
            await run_in_thread(partial(move_on, to=to, num_total=found.num_lines, **named))
        elif await run_in_thread(
            partial(move_on, to=BatchState.FAILED, errors=found.errors, **named)
        ):
            await run_in_thread(partial(store.remove_work, self._id))

    def _check_model(self, found: Examined) -> None:
        """Refuse a model that nobody serves to this owner, or that is of another kind."""
        caller = self._find_caller()
        if caller is None:
            found.blame("invalid_api_key", "The API key of this batch has ended.")
            return
        try:
            choose_model(found.model, caller, kinds_for(self._batch.endpoint))
        except LlameroError as error:
            found.blame(error.code or "invalid_value", error.message, None, "body.model")

    def _find_caller(self) -> Caller | None:
        key_id = self._batch.api_key_id
        grant = read_grant(self._batch.grant)
        caller = None if key_id is None else find_key_caller(key_id, grant)
        return caller and replace(caller, priority=IDLE_PRIORITY)

    async def _answer_what_is_left(self) -> None:
        """Answer lines until all are done, time is up, or ``stop`` is called."""
        batch = self._batch
        left = (batch.expires_at - timezone.now()).total_seconds()
        answering = asyncio.create_task(self._answer_all())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait(
                (answering, stopping), timeout=max(0, left), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopping.cancel()
            if not answering.done():
                answering.cancel()
            outcomes = await asyncio.gather(answering, return_exceptions=True)
            # What is answered is not lost when this process ends in good order.
            await self._write()
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]
        if self._stopping.is_set():
            await run_in_thread(partial(batch.refresh_from_db, fields=["state"]))

    async def _answer_all(self) -> None:
        async with self._places.of(self._batch.owner):
            self._caller = await run_in_thread(self._find_caller)
            self._lines = _LineSource(self._id, self._writer)
            try:
                async with asyncio.TaskGroup() as group:
                    keeping_up = group.create_task(self._keep_up())
                    workers = [group.create_task(self._answer_lines()) for _ in range(self._most)]
                    await asyncio.wait(workers)
                    keeping_up.cancel()
            except ExceptionGroup as failed:
                raise failed.exceptions[0] from None

    async def _answer_lines(self) -> None:
        while (numbered := await self._lines.next()) is not None:
            found = await self._answer(numbered)
            custom_id = numbered.line.custom_id
            self._results.append(answered(self._id, numbered.number, custom_id, found))
            size = sum(len(result.document) for result in self._results)
            if len(self._results) >= WRITTEN_AT_ONCE or size >= WRITTEN_BYTES:
                await self._write()

    async def _answer(self, numbered: NumberedLine) -> Answer:
        """Make a request until it is answered for good."""
        endpoint, body, num_tries = self._batch.endpoint, bytes(numbered.line.body), 0
        while True:
            caller = self._caller
            if caller is None:
                # The key has ended, and the batch is about to.
                await asyncio.Event().wait()
                continue
            deployment = await run_in_thread(partial(self._find_deployment, caller))
            gate = self._gates.of(deployment)
            found = await gate.run(self._batch.owner, partial(answer, endpoint, body, caller))
            num_tries += found.is_doubtful
            if found.is_limited:
                # Its own limits: batches of others go on meanwhile.
                assert found.retry_seconds is not None
                await asyncio.sleep(min(found.retry_seconds, LONGEST_LIMITED_SECONDS))
                continue
            if found.is_passing:
                gate.pause()
                continue
            gate.note_success()
            if not found.is_doubtful or num_tries >= MAX_DOUBTFUL_TRIES:
                return found
            await asyncio.sleep(RETRY_SECONDS)

    def _find_deployment(self, caller: Caller) -> str:
        """Tell who will answer; nobody, where the model is gone, which the answer will say."""
        try:
            kinds = kinds_for(self._batch.endpoint)
            return choose_model(self._batch.model, caller, kinds).deployment
        except LlameroError:
            return ""

    async def _keep_up(self) -> None:
        """See now and then whether the key may still be used, and write what waits too long."""
        while True:
            await asyncio.sleep(CALLER_SECONDS)
            self._caller = await run_in_thread(self._find_caller)
            if self._caller is None:
                await run_in_thread(partial(cancel_batch, batch_id=self._id))
                self.stop()
            if time.monotonic() - self._written_at >= WRITTEN_AFTER_SECONDS:
                await self._write()

    async def _write(self) -> None:
        async with self._writing:
            results, self._results = self._results, []
            self._written_at = time.monotonic()
            if not results:
                return
            # A thread cannot be cancelled: whoever is waits for it, and nobody writes meanwhile.
            writing = asyncio.create_task(run_in_thread(partial(self._writer.write, results)))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await asyncio.wait((writing,))
                raise

    async def _give_up(self, code: str, message: str) -> None:
        """Say of all lines that are left that they were not answered, and why."""
        if not self._batch.num_total:
            return
        lines = _LineSource(self._id, self._writer)
        while numbered := await lines.next():
            custom_id = numbered.line.custom_id
            self._results.append(not_made(self._id, numbered.number, custom_id, code, message))
            if len(self._results) >= _GIVEN_UP_AT_ONCE:
                await self._write()
        await self._write()


class _LineSource:
    """The lines of a batch that are not done, for all who answer them."""

    def __init__(self, batch_id: str, writer: ResultWriter) -> None:
        self._reader = LineReader(store.work_folder(batch_id) / "input.jsonl")
        self._done = writer.done
        self._lines: list[NumberedLine] = []
        self._is_at_end = False
        self._reading = asyncio.Lock()

    async def next(self) -> NumberedLine | None:
        """Give a line that nobody was given yet; None at the end."""
        async with self._reading:
            while True:
                while self._lines:
                    numbered = self._lines.pop()
                    if numbered.number not in self._done:
                        return numbered
                if self._is_at_end:
                    return None
                self._lines = (await run_in_thread(self._reader.read))[::-1]
                self._is_at_end = not self._lines
