"""Real models give with cached prefixes the text they give without, however these got there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from inference.engine.admission import admit
from inference.engine.engine import Engine
from inference.protocol.events import Event
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.protocol.sampling import SamplingParams
from tests.inference.engine.fakes import FAR_DEADLINE, Outcome
from tests.tiny_architectures import WINDOW, write_recurrent_model, write_windowed_model
from tests.tiny_model import write_tiny_model

pytestmark = pytest.mark.model

START = "Once upon a time there was a server that never computed anything twice. "
WRITERS: dict[str, Callable[[Path], None]] = {
    "plain": write_tiny_model,
    "windowed": write_windowed_model,
    "recurrent": write_recurrent_model,
}


class RealBench:
    """An engine over a real model, stepped by hand."""

    def __init__(self, model: LlamaModel, profile: RuntimeProfile) -> None:
        self.backend, self.profile = LlamaBackend(model, profile), profile
        self.events: list[tuple[str, Event]] = []
        self.engine = Engine(self.backend, profile, self.events.extend)

    def add(self, job_id: str, prompt: str, **fields: object) -> None:
        """Put a job in."""
        model = self.backend.model
        values: dict[str, object] = {
            "deployment": "d",
            "owner": "o",
            "salt": "s",
            "gateway": "g",
            "prompt_tokens": tuple(model.tokenize(prompt, add_special=True, parse_special=True)),
            "deadline": FAR_DEADLINE,
            "sampling": SamplingParams(temperature=0),
            "max_tokens": 12,
            "ignore_eos": True,
        }
        job = GenerationJob(id=job_id, **values | fields)  # type: ignore[arg-type]
        self.engine.add(admit(job, self.backend, self.profile))

    def run(self) -> None:
        """Run until nothing is left to do, checking the invariants after each step."""
        while self.engine.has_work:
            self.engine.step()
            self.engine.check_integrity()

    def outcome(self, job_id: str) -> Outcome:
        """Sum up what was told of a job."""
        return Outcome([event for other, event in self.events if other == job_id])

    def answer(self, job_id: str, prompt: str, **fields: object) -> Outcome:
        """Run one job to its end."""
        self.add(job_id, prompt, **fields)
        self.run()
        return self.outcome(job_id)


def open_bench(path: Path, **profile: object) -> RealBench:
    """Load a model and make an engine of it."""
    values: dict[str, object] = {"num_slots": 4, "context_length": 512, "num_threads": 1}
    made = RuntimeProfile(**values | profile)  # type: ignore[arg-type]
    spec = ReplicaSpec(
        replica="r",
        deployment="d",
        model="m",
        kind=ModelKind.CHAT,
        files=(str(path),),
        sha256=("",),
        profile=made,
    )
    return RealBench(load_model(spec, lambda _: None), made)


@pytest.fixture(scope="module", params=list(WRITERS))
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model of each kind of memory."""
    path = tmp_path_factory.mktemp("models") / f"{request.param}.gguf"
    WRITERS[request.param](path)
    return path


@pytest.fixture(params=["split", "unified"])
def layout(request: pytest.FixtureRequest) -> dict[str, object]:
    return {"is_kv_unified": request.param == "unified"}


def texts_without_cache(path: Path, layout: dict[str, object], prompts: list[str]) -> list[str]:
    bench = open_bench(path, **layout)
    return [bench.answer(prompt, prompt, cache_prompt=False).text for prompt in prompts]


def test_prompts_that_share_a_beginning(path: Path, layout: dict[str, object]) -> None:
    prompts = [START + end for end in ("It was", "It was slow", "But", "It was slow, but", "")]
    prompts += [START * 2 + end for end in ("a", "b", "c")]
    bench = open_bench(path, **layout)
    texts = [bench.answer(prompt, prompt).text for prompt in prompts]
    assert texts == texts_without_cache(path, layout, prompts)
    assert bench.engine.stats().num_cached_tokens > 2 * len(START)


def test_prompts_that_come_together(path: Path, layout: dict[str, object]) -> None:
    prompts = [f"{START * 2}{at} and so on" for at in range(7)]
    bench = open_bench(path, step_token_budget=64, **layout)
    for prompt in prompts:
        bench.add(prompt, prompt)
    bench.run()
    texts = [bench.outcome(prompt).text for prompt in prompts]
    alone = texts_without_cache(path, layout, prompts)
    assert texts == alone
    assert bench.engine.stats().num_cached_tokens >= 4 * len(START * 2)


def test_a_conversation_that_lost_its_slot(path: Path, layout: dict[str, object]) -> None:
    bench = open_bench(path, num_slots=1, **layout)
    first = bench.answer("first", START)
    bench.answer("between", "Something else, of no great length but of some.")
    start = bench.backend.model.tokenize(START, add_special=True, parse_special=True)
    # As ids: what a random model writes may become other tokens when read again.
    prompt = (*start, *first.token_ids, *start)
    second = bench.answer("second", "", prompt_tokens=prompt)
    assert second.done.num_cached_tokens == len(start) + len(first.token_ids) - 1
    alone = open_bench(path, num_slots=1, **layout).answer(
        "alone", "", prompt_tokens=prompt, cache_prompt=False
    )
    assert alone.text == second.text


def test_a_state_longer_than_the_window_is_only_used_whole(tmp_path: Path) -> None:
    write_windowed_model(tmp_path / "windowed.gguf")
    bench = open_bench(tmp_path / "windowed.gguf")
    assert bench.backend.state_window == WINDOW
    prompt = START + "and"
    outcomes = [bench.answer(f"{at}", prompt, salt="s") for at in range(3)]
    assert len({outcome.text for outcome in outcomes}) == 1


def test_smollm2_gives_one_text_cold_warm_copied_and_restored(smollm2_path: Path) -> None:
    bench = open_bench(smollm2_path, num_slots=2, num_threads=2)
    prompt = START * 4 + "Every day it"
    cold = bench.answer("cold", prompt, max_tokens=16)
    assert cold.done.num_cached_tokens == 0
    num_prompt = cold.done.num_prompt_tokens
    bench.add("warm", prompt, max_tokens=16)
    bench.add("copied", prompt, max_tokens=16)
    bench.run()
    for at in range(2):
        bench.add(f"pushes {at}", f"{at} " + "other words that fill a slot " * 4)
    bench.run()
    restored = bench.answer("restored", prompt, max_tokens=16)
    for outcome in (bench.outcome("warm"), bench.outcome("copied"), restored):
        assert outcome.done.num_cached_tokens == num_prompt - 1
        assert outcome.text == cold.text
