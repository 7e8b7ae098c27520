"""Requests with different adapters, side by side."""

from itertools import pairwise
from typing import Any

import pytest

from inference.backend.fake import FakeBackend, FakeModel
from inference.engine.adapters import settle_adapters
from inference.engine.admission import admit
from inference.engine.engine import Engine
from inference.protocol.errors import EngineError
from inference.protocol.events import Event
from inference.protocol.jobs import Loras
from inference.protocol.replicas import AdapterFacts, RuntimeProfile
from tests.inference.engine.fakes import Outcome, make_job

ADAPTERS = (AdapterFacts(name="polite", scale=0.5), AdapterFacts(name="legal"))
CHOICES: tuple[Loras | None, ...] = (None, (), ((0, 1.0),), ((1, 1.0),), ((0, 0.5), (1, 2.0)))


class AdapterBench:
    """An engine over a fake model with two adapters, which notes each call's adapters."""

    def __init__(self, **profile: Any) -> None:
        self.backend = FakeBackend(FakeModel(256, adapters=ADAPTERS))
        self.events: list[tuple[str, Event]] = []
        self.used: list[Loras] = []
        self.engine = Engine(
            self.backend,
            RuntimeProfile(num_slots=4, context_length=256, **profile),
            self.events.extend,
        )
        use = self.backend.use_adapters

        def note(loras: Loras) -> None:
            self.used.append(loras)
            use(loras)

        self.backend.use_adapters = note  # type: ignore[method-assign]

    def add(self, job_id: str, prompt: str, loras: Loras | None, **fields: Any) -> None:
        job = make_job(job_id, prompt, loras=loras, **{"max_tokens": 12} | fields)
        self.engine.add(admit(job, self.backend))

    def run(self) -> None:
        while self.engine.has_work:
            self.engine.step()
            self.engine.check_integrity()

    def outcome(self, job_id: str) -> Outcome:
        return Outcome([event for other, event in self.events if other == job_id])

    def answer(self, prompt: str, loras: Loras | None, **fields: Any) -> Outcome:
        self.add("alone", prompt, loras, **fields)
        self.run()
        return self.outcome("alone")


@pytest.mark.parametrize("is_kv_unified", [False, True])
@pytest.mark.parametrize("speculation", ["", "ngram"])
def test_each_sequence_gets_its_own_adapters(is_kv_unified: bool, speculation: str) -> None:
    bench = AdapterBench(is_kv_unified=is_kv_unified, speculation=speculation)
    for at, loras in enumerate(CHOICES):
        bench.add(f"job{at}", "the same prompt for all", loras)
    bench.run()
    texts = [bench.outcome(f"job{at}").text for at in range(len(CHOICES))]
    assert texts == [AdapterBench().answer("the same prompt for all", one).text for one in CHOICES]
    assert len(set(texts)) == len(CHOICES)


def test_sequences_of_the_same_adapters_share_calls() -> None:
    bench = AdapterBench()
    for number in range(4):
        bench.add(f"job{number}", f"prompt {number}", ((number % 2, 1.0),))
    bench.run()
    decoding = [batch for batch in bench.backend.batches if {size for _, size in batch} == {1}]
    assert max(len(batch) for batch in decoding) == 2


def test_nobody_waits_for_the_turn_of_others() -> None:
    bench = AdapterBench()
    bench.add("first", "x", ((0, 1.0),), max_tokens=40)
    bench.add("second", "y", ((1, 1.0),), max_tokens=40)
    for _ in range(10):
        bench.engine.step()
    counts = [len(bench.outcome(name).token_ids) for name in ("first", "second")]
    assert counts == [10, 10]


def test_adapters_change_as_seldom_as_they_can() -> None:
    """Each step begins with the adapters that the last one ended with."""
    bench = AdapterBench()
    bench.add("first", "x", ((0, 1.0),), max_tokens=20)
    bench.add("second", "y", ((1, 1.0),), max_tokens=20)
    bench.run()
    changes = sum(a != b for a, b in pairwise(bench.used))
    assert changes <= len(bench.used) / 2 + 1


def test_cells_are_never_shared_across_adapters() -> None:
    bench = AdapterBench()
    prompt = "a prompt that is long enough to be worth reusing" * 2
    assert bench.answer(prompt, ((0, 1.0),)).done.num_cached_tokens == 0
    for number, loras in enumerate((((1, 1.0),), ((0, 0.9),), (), ((0, 1.0), (1, 0.1)))):
        bench.add(f"job{number}", prompt, loras)
        bench.run()
        assert bench.outcome(f"job{number}").done.num_cached_tokens == 0


def test_one_meaning_shares_cells_however_it_is_spelled() -> None:
    bench = AdapterBench()
    prompt = "a prompt that is long enough to be worth reusing" * 2
    bench.answer(prompt, None)
    for number, loras in enumerate((((0, 0.5),), ((1, 0.0), (0, 0.5)))):
        bench.add(f"job{number}", prompt, loras)
        bench.run()
        assert bench.outcome(f"job{number}").done.num_cached_tokens > 0


@pytest.mark.parametrize(
    ("asked", "settled"),
    [
        (None, ((0, 0.5),)),
        ((), ()),
        (((1, 2.0), (0, 1.0)), ((0, 1.0), (1, 2.0))),
        (((0, 0.0),), ()),
        (((0, -1.0),), ((0, -1.0),)),
    ],
)
def test_what_acts_has_one_spelling(asked: Loras | None, settled: Loras) -> None:
    assert settle_adapters(asked, ADAPTERS) == settled


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (((2, 1.0),), "no adapter 2; there are 0 \\(polite\\), 1 \\(legal\\)"),
        (((-1, 1.0),), "no adapter -1"),
        (((0, 1.0), (0, 2.0)), "twice"),
        (((0, 101.0),), "within 100"),
        (((0, float("nan")),), "within 100"),
        (((0, float("inf")),), "within 100"),
    ],
)
def test_wrong_choices_are_refused_by_name(asked: Loras, words: str) -> None:
    with pytest.raises(EngineError, match=words) as caught:
        settle_adapters(asked, ADAPTERS)
    assert caught.value.param == "lora"


def test_a_deployment_without_adapters_says_so() -> None:
    with pytest.raises(EngineError, match="has none"):
        settle_adapters(((0, 1.0),), ())
    assert settle_adapters(None, ()) == ()
