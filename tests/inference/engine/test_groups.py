"""An engine tells how many sequences attend to one beginning together, while they do."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from inference.backend.grouped import open_backend
from inference.backend.llama_model import load_model
from inference.engine.thread import EngineThread
from inference.protocol.events import Event
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from tests.inference.engine.fakes import make_job
from tests.inference.engine.inbox import Inbox

pytestmark = pytest.mark.model
PROFILE = RuntimeProfile(num_slots=8, context_length=512, num_threads=1)
SHARED = tuple(40 + at * 7 % 150 for at in range(300))


def test_who_attends_to_one_beginning_together_is_counted_while_it_runs(
    tiny_model_path: Path,
) -> None:
    spec = ReplicaSpec(
        replica="r",
        deployment="d",
        model="m",
        kind=ModelKind.CHAT,
        files=(str(tiny_model_path),),
        sha256=("",),
        profile=PROFILE,
    )
    model = load_model(spec, lambda _: None)
    inbox = Inbox()
    told: set[tuple[int, int]] = set()

    def take(events: Sequence[tuple[str, Event]]) -> None:
        stats = thread.stats()
        told.add((stats.num_sharing, stats.num_shared_tokens))
        inbox(events)

    thread = EngineThread(open_backend(model, PROFILE), PROFILE, take)
    jobs = [
        make_job(f"job{own}", prompt_tokens=(*SHARED, 200 + own), max_tokens=40, ignore_eos=True)
        for own in range(6)
    ]
    for job in jobs:
        thread.submit(job)
    thread.start()
    for job in jobs:
        inbox.wait_for_end(job.id)
    stats = thread.stats()
    thread.stop()
    model.close()
    assert (6, len(SHARED)) in told
    assert (stats.num_sharing, stats.num_shared_tokens) == (0, 0)
