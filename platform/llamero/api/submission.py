"""How the jobs of one request are submitted: measured against its limits, all of them or none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import EmbeddingJob, GenerationJob
from inference.relay.limits import JobNeed, Meter, Stake
from llamero import dispatch
from llamero.accounts.callers import Caller
from llamero.api.billing import bill_jobs
from llamero.dispatch import JobStream
from llamero.limits.metering import measure
from llamero.limits.readings import note_readings
from llamero.usage.bill import make_bill
from models_registry.selectors import ServedModel


@dataclass(frozen=True, slots=True)
class MeasuredJobs:
    """Jobs of one request that may come in, the stake of each, and the meter of what they take."""

    jobs: tuple[GenerationJob, ...]
    stakes: tuple[Stake, ...]
    meter: Meter | None


async def measure_jobs(
    jobs: Sequence[GenerationJob],
    *,
    served: ServedModel,
    caller: Caller,
    room_of: Callable[[GenerationJob], int],
) -> MeasuredJobs:
    """Measure jobs; an answer without a bound gets one where a limit on requests sets it.

    ``room_of`` tells how many tokens the context holds behind a prompt. Raises LlameroError for
    what will never fit.
    """
    needs = [JobNeed(job.id, len(job.prompt_tokens), job.max_tokens, room_of(job)) for job in jobs]
    measured = await measure(
        caller=caller,
        model_pk=served.model_pk,
        jobs=needs,
        seconds=served.profile.job_timeout_seconds,
    )
    if (longest := measured.longest_answer) is not None:
        jobs = [
            msgspec.structs.replace(job, max_tokens=longest) if longest < room_of(job) else job
            for job in jobs
        ]
    return MeasuredJobs(tuple(jobs), measured.stakes, measured.meter)


async def submit_jobs(
    measured: MeasuredJobs, served: ServedModel, caller: Caller, ends_at: float | None = None
) -> list[JobStream]:
    """Submit jobs, to be read until a time; if one is refused none goes on."""
    dispatcher, profile = dispatch.get_dispatcher(), served.profile
    bills = await bill_jobs(measured.jobs, served, caller)
    streams: list[JobStream] = []
    try:
        for job, stake, bill in zip(measured.jobs, measured.stakes, bills, strict=True):
            meter = None if streams else measured.meter
            stream = await dispatcher.submit(
                job,
                max_queue=profile.max_queue,
                max_owner_queue=profile.max_queue_per_key,
                bill=bill,
                stake=stake,
                meter=meter,
            )
            stream.reader_ends_at = ends_at
            streams.append(stream)
    except BaseException as error:
        # Also when the client goes: nobody knows of the jobs submitted so far, durable or not.
        for submitted in streams:
            await submitted.cancel()
            await submitted.close()
        if measured.meter is not None and (streams or _may_have_been_taken(error)):
            dispatcher.leave(measured.jobs[len(streams) :])
        raise
    note_readings(streams[0].readings)
    return streams


def _may_have_been_taken(error: BaseException) -> bool:
    """Whether the first job may have come in all the same, and taken what the others need."""
    return not isinstance(error, EngineError) or error.code is ErrorCode.BROKER_UNAVAILABLE


async def submit_embedding(job: EmbeddingJob, served: ServedModel, caller: Caller) -> JobStream:
    """Submit a job of embeddings or scores, measured against the limits of its caller."""
    profile = served.profile
    measured = await measure(
        caller=caller,
        model_pk=served.model_pk,
        jobs=[JobNeed(job.id, job.cost, 0, 0)],
        seconds=profile.job_timeout_seconds,
    )
    stream = await dispatch.get_dispatcher().submit(
        job,
        max_queue=profile.max_queue,
        max_owner_queue=profile.max_queue_per_key,
        bill=make_bill(served, caller),
        stake=measured.stakes[0],
        meter=measured.meter,
    )
    note_readings(stream.readings)
    return stream
