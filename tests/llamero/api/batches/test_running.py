"""Batches are answered once, by the routes' own code, whatever dies meanwhile."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone
from openai.types import Batch as BatchDocument

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Vectors
from inference.protocol.jobs import IDLE_PRIORITY
from inference.relay.limits import Counter, CounterKind, LimitReached
from llamero.accounts.models import ApiKey
from llamero.api.threads import run_in_thread
from llamero.batches import store
from llamero.batches.models import Batch
from llamero.batches.running import batch_run
from llamero.batches.running.batch_run import BatchRun
from llamero.batches.running.results import ResultWriter, not_made
from llamero.batches.services import BatchLost, cancel_batch, claim_batch
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.batches.helpers import look, make_batch, make_line, make_run, read_results
from tests.llamero.api.described import check
from tests.llamero.api.fakes import FakeDispatcher, engine_error, say


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_run, "CALLER_SECONDS", 0.02)
    monkeypatch.setattr(batch_run, "WRITTEN_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(batch_run, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr("llamero.batches.running.gates.FIRST_PAUSE_SECONDS", 0.01)


def echo(job: Any) -> list[Any]:
    """Say what was asked."""
    return say("".join(map(chr, job.prompt_tokens)).strip())


async def until_done(batch: dict[str, Any], count: int) -> None:
    while (await look(batch))["request_counts"]["completed"] < count:
        await asyncio.sleep(0.005)


async def test_all_lines_are_answered(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = echo
    batch = await make_batch(*range(40), make_line(40, temperature=9), make_line(41, n=2))
    await make_run(batch).run()
    shown = await get(f"/v1/batches/{batch['id']}")
    check("GET", f"/v1/batches/{batch['id']}", shown)
    ended = BatchDocument.model_validate(shown.json())
    assert (ended.status, ended.model) == ("completed", "smol")
    assert ended.request_counts is not None
    assert ended.request_counts.model_dump() == {"total": 42, "completed": 41, "failed": 1}
    assert ended.in_progress_at and ended.finalizing_at and ended.completed_at
    results = await read_results(batch)
    assert set(results) == {f"r{number}" for number in range(42)}
    for number in range(40):
        response = results[f"r{number}"]["response"]
        assert (response["status_code"], results[f"r{number}"]["error"]) == (200, None)
        [choice] = response["body"]["choices"]
        assert choice["message"]["content"] == f"user:Hi {number}"
    refused = results["r40"]["response"]
    assert (refused["status_code"], refused["body"]["error"]["param"]) == (400, "temperature")
    assert len(results["r41"]["response"]["body"]["choices"]) == 2
    spent = [line["response"]["body"].get("usage", {}) for line in results.values()]
    assert ended.usage is not None
    assert ended.usage.total_tokens == sum(usage.get("total_tokens", 0) for usage in spent) > 0
    assert {job.priority for job in dispatcher.jobs} == {IDLE_PRIORITY}
    assert {job.owner for job in dispatcher.jobs} == {"key:1"}
    assert not store.work_folder(batch["id"]).exists()
    files = (await get("/v1/files?purpose=batch_output")).json()["data"]
    assert {one["id"] for one in files} == {ended.output_file_id, ended.error_file_id}


@pytest.mark.parametrize(
    ("endpoint", "model", "asked", "kind"),
    [
        ("/v1/completions", "smol", {"prompt": "a"}, "text_completion"),
        ("/v1/embeddings", "mini", {"input": "a"}, "list"),
        ("/v1/responses", "smol", {"input": "a"}, "response"),
    ],
)
async def test_each_route_has_batches(
    dispatcher: FakeDispatcher, endpoint: str, model: str, asked: dict[str, Any], kind: str
) -> None:
    if model == "mini":
        dispatcher.script = lambda job: [Vectors(0, 1, ("AACAPw==",)), say("")[-1]]
    line = make_line(1, endpoint, model=model, **asked)
    batch = await make_batch(line, endpoint=endpoint)
    await make_run(batch).run()
    body = (await read_results(batch))["r1"]["response"]["body"]
    assert (body["object"], body["model"]) == (kind, model)
    assert body.get("store", False) is False
    assert dispatcher.jobs[0].priority == IDLE_PRIORITY


async def test_a_bad_file_fails_before_anything_is_asked(dispatcher: FakeDispatcher) -> None:
    batch = await make_batch(1, b"{\n")
    await make_run(batch).run()
    shown = await get(f"/v1/batches/{batch['id']}")
    check("GET", f"/v1/batches/{batch['id']}", shown)
    ended = shown.json()
    assert (ended["status"], ended["errors"]["data"][0]["line"]) == ("failed", 2)
    assert ended["failed_at"] and not dispatcher.jobs
    assert not store.work_folder(batch["id"]).exists()


@pytest.mark.parametrize(
    ("model", "code"), [("nothing", "model_not_found"), ("mini", "invalid_value")]
)
async def test_a_model_that_cannot_answer_fails_it(model: str, code: str) -> None:
    batch = await make_batch(make_line(1, model=model))
    await make_run(batch).run()
    ended = await look(batch)
    assert (ended["status"], ended["errors"]["data"][0]["code"]) == ("failed", code)


async def test_a_name_that_no_database_takes_fails_it(
    dispatcher: FakeDispatcher,
) -> None:
    batch = await make_batch(make_line(1, model="smol\0"))
    await make_run(batch).run()
    ended = await look(batch)
    assert (ended["status"], ended["model"]) == ("failed", "smol\N{REPLACEMENT CHARACTER}")
    assert "\0" not in ended["errors"]["data"][0]["message"]
    assert dispatcher.jobs == []


async def test_a_run_that_ends_midway_is_gone_on_with(dispatcher: FakeDispatcher) -> None:
    dispatcher.num_slots = 3
    goes_on = asyncio.Event()
    dispatcher.script = lambda job: [*([] if len(dispatcher.jobs) < 9 else [goes_on]), *echo(job)]
    batch = await make_batch(*range(12))
    first = asyncio.create_task(make_run(batch).run())
    await until_done(batch, 8)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert (await look(batch))["status"] == "in_progress"
    num_asked = len(dispatcher.jobs)
    goes_on.set()
    await make_run(batch).run()
    assert (await look(batch))["request_counts"] == {"total": 12, "completed": 12, "failed": 0}
    assert len(dispatcher.jobs) == num_asked + 4
    assert len(await read_results(batch)) == 12


async def test_who_lost_a_batch_can_write_no_more(dispatcher: FakeDispatcher) -> None:
    batch = await make_batch(1, 2)
    goes_on = asyncio.Event()
    dispatcher.script = lambda job: [goes_on, *echo(job)]
    first = asyncio.create_task(make_run(batch).run())
    while len(dispatcher.jobs) < 2:
        await asyncio.sleep(0.005)
    second = asyncio.create_task(make_run(batch).run())
    while len(dispatcher.jobs) < 4:
        await asyncio.sleep(0.005)
    goes_on.set()
    with pytest.raises(BatchLost):
        await first
    await second
    assert len(await read_results(batch)) == 2
    with pytest.raises(BatchLost):
        await make_run(batch).run()


async def test_what_was_not_counted_is_no_part_of_the_answer() -> None:
    made = await make_batch(1)

    def write() -> None:
        Batch.objects.update(state="in_progress", num_total=1)
        writer = ResultWriter(claim_batch(batch_id=made["id"]))
        Batch.objects.update(claim=99)
        with pytest.raises(BatchLost):
            writer.write([not_made(made["id"], 0, "r1", "half", "")])
        Batch.objects.update(claim=0)
        again = ResultWriter(claim_batch(batch_id=made["id"]))
        again.write([not_made(made["id"], 0, "r1", "whole", "")])
        again.write([not_made(made["id"], 0, "r1", "twice", "")])

    await run_in_thread(write)
    await make_run(made).run()
    assert (await read_results(made))["r1"]["error"]["code"] == "whole"
    assert (await look(made))["request_counts"]["failed"] == 1


async def cancel(batch: dict[str, Any], run: BatchRun) -> None:
    assert (await post(f"/v1/batches/{batch['id']}/cancel")).json()["status"] == "cancelling"
    run.stop()


async def end_key(batch: dict[str, Any], run: BatchRun) -> None:
    await run_in_thread(lambda: ApiKey.objects.filter(pk=1).update(enabled=False))


async def expire(batch: dict[str, Any], run: BatchRun) -> None:
    past = timezone.now() - timedelta(seconds=1)
    await run_in_thread(lambda: Batch.objects.update(expires_at=past))
    run._batch.expires_at = timezone.now()
    run.stop()


@pytest.mark.parametrize(
    ("end", "state", "code"),
    [
        (cancel, "cancelled", "batch_cancelled"),
        (end_key, "cancelled", "batch_cancelled"),
        (expire, "expired", "batch_expired"),
    ],
)
async def test_what_is_done_is_kept_when_it_ends_early(
    dispatcher: FakeDispatcher, end: Any, state: str, code: str
) -> None:
    goes_on = asyncio.Event()
    dispatcher.script = lambda job: [*([] if len(dispatcher.jobs) < 4 else [goes_on]), *echo(job)]
    batch = await make_batch(*range(9))
    run = make_run(batch)
    running = asyncio.create_task(run.run())
    await until_done(batch, 3)
    await end(batch, run)
    await running
    ended = await look(batch)
    assert (ended["status"], bool(ended[f"{state}_at"])) == (state, True)
    assert ended["request_counts"] == {"total": 9, "completed": 3, "failed": 6}
    results = await read_results(batch)
    assert len(results) == 9
    unmade = [one for one in results.values() if one["response"] is None]
    assert {one["error"]["code"] for one in unmade} == {code}
    assert all(stream.is_closed for stream in dispatcher.streams)


async def test_one_is_cancelled_before_it_begins() -> None:
    batch = await make_batch(1)
    await run_in_thread(partial(cancel_batch, batch_id=batch["id"]))
    await make_run(batch).run()
    ended = await look(batch)
    assert (ended["status"], ended["output_file_id"], ended["error_file_id"]) == (
        "cancelled",
        None,
        None,
    )


async def test_a_model_that_is_away_is_waited_for(dispatcher: FakeDispatcher) -> None:
    dispatcher.submit_error = engine_error(ErrorCode.NO_READY_REPLICA)
    dispatcher.num_accepted = 0
    batch = await make_batch(1, 2)
    running = asyncio.create_task(make_run(batch).run())
    await asyncio.sleep(0.1)
    assert not running.done()
    dispatcher.submit_error = None
    await running
    assert (await look(batch))["request_counts"]["completed"] == 2


async def test_a_line_that_meets_a_limit_waits_and_holds_nobody_up(
    dispatcher: FakeDispatcher,
) -> None:
    counter = Counter(CounterKind.REQUESTS, "key:1", 1)
    dispatcher.submit_error = LimitReached(
        counter, wait_seconds=0.02, is_passing=False, readings=()
    )
    dispatcher.num_accepted = 1
    batch = await make_batch(1, 2)
    running = asyncio.create_task(make_run(batch).run())
    while len(dispatcher.meters) < 4:
        await asyncio.sleep(0.01)
    assert not running.done()
    dispatcher.submit_error = None
    await running
    assert (await look(batch))["request_counts"] == {"total": 2, "completed": 2, "failed": 0}


async def test_a_fault_of_the_server_is_tried_again_but_not_for_ever(
    dispatcher: FakeDispatcher,
) -> None:
    dispatcher.submit_error = engine_error(ErrorCode.ENGINE_FAILED)
    dispatcher.num_accepted = 0
    batch = await make_batch(1)
    await make_run(batch).run()
    assert (await read_results(batch))["r1"]["response"]["status_code"] == 500


async def test_the_place_of_others_is_theirs(dispatcher: FakeDispatcher) -> None:
    dispatcher.num_slots, goes_on = 2, asyncio.Event()
    dispatcher.script = lambda job: [goes_on, *echo(job)]
    batch = await make_batch(1, 2)
    running = asyncio.create_task(make_run(batch).run())
    while not dispatcher.jobs:
        await asyncio.sleep(0.005)
    dispatcher.num_slots, dispatcher.num_queued = 1, 1
    while not dispatcher.streams[0].is_closed:
        await asyncio.sleep(0.005)
    dispatcher.num_slots, dispatcher.num_queued = 2, 0
    goes_on.set()
    await running
    assert len(await read_results(batch)) == 2
    assert len(dispatcher.jobs) == 3
