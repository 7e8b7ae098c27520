"""Guesses and adapters on real models: the same texts, in fewer steps."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from inference.protocol.errors import EngineError
from inference.protocol.replicas import LoraAdapter, ReplicaSpec, RuntimeProfile
from inference.protocol.sampling import SamplingParams
from inference.worker.loading import build_engine
from tests.inference.backend.jobs import make_job, make_spec
from tests.inference.engine.fakes import Outcome
from tests.inference.engine.inbox import Inbox
from tests.tiny_lora import write_lora
from tests.tiny_model import write_tiny_model

PROFILE = RuntimeProfile(num_slots=4, context_length=256, num_threads=1)
PROMPTS = tuple(tuple(range(5 + 3 * at, 25 + 3 * at)) for at in range(4))


class Replica:
    """A running engine and its inbox."""

    def __init__(self, spec: ReplicaSpec) -> None:
        self.inbox = Inbox()
        self.runner = build_engine(spec, self.inbox, lambda _: None).runner
        self.runner.start()
        self._num_jobs = 0

    def submit(self, prompt: tuple[int, ...], **fields: object) -> str:
        self._num_jobs += 1
        job_id = f"job{self._num_jobs}"
        self.runner.submit(make_job(prompt, id=job_id, **{"max_tokens": 60} | fields))
        return job_id

    def answer_all(self, *requests: dict[str, object]) -> list[Outcome]:
        """Run requests together."""
        ids = [self.submit(**request) for request in requests]  # type: ignore[arg-type]
        return [self.inbox.wait_for_end(job_id) for job_id in ids]


def run(spec: ReplicaSpec, *requests: dict[str, object], is_together: bool = True) -> list[Outcome]:
    """Run requests on a replica of their own, at once or one after the other."""
    replica = Replica(spec)
    try:
        if is_together:
            return replica.answer_all(*requests)
        return [replica.answer_all(request)[0] for request in requests]
    finally:
        replica.runner.stop()


def guessing(spec: ReplicaSpec, **changes: object) -> ReplicaSpec:
    profile = msgspec.structs.replace(spec.profile, **{"speculation": "ngram"} | changes)
    return msgspec.structs.replace(spec, profile=profile)


@pytest.fixture(scope="module")
def spec(tiny_model_path: Path) -> ReplicaSpec:
    return make_spec(tiny_model_path, profile=PROFILE)


@pytest.mark.parametrize("temperature", [0.0, 0.3])
def test_texts_of_a_looping_model_stay_the_same(spec: ReplicaSpec, temperature: float) -> None:
    """Random weights soon go round in circles, which is what prompt lookup is good at."""
    requests: list[dict[str, object]] = [
        {
            "prompt": prompt,
            "ignore_eos": True,
            "sampling": SamplingParams(temperature=temperature, seed=7),
            "num_logprobs": 1,
        }
        for prompt in PROMPTS
    ]
    plain = run(spec, *requests)
    guessed = run(guessing(spec), *requests)
    assert [one.token_ids for one in guessed] == [one.token_ids for one in plain]


def test_the_model_itself_is_the_best_draft(spec: ReplicaSpec) -> None:
    """It is right each time, so that nearly all tokens come from guesses."""
    request: dict[str, object] = {"prompt": PROMPTS[0], "ignore_eos": True}
    with_draft = msgspec.structs.replace(
        guessing(spec, speculation="draft"), draft_files=spec.files
    )
    [plain], [guessed] = run(spec, request), run(with_draft, request)
    assert guessed.token_ids == plain.token_ids
    assert guessed.done.num_accepted_tokens == guessed.done.num_drafted_tokens


def test_another_draft_is_wrong_and_changes_nothing(spec: ReplicaSpec, tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "other.gguf", seed=9)
    with_draft = msgspec.structs.replace(
        guessing(spec, speculation="draft"), draft_files=(str(tmp_path / "other.gguf"),)
    )
    requests: list[dict[str, object]] = [
        {"prompt": prompt, "ignore_eos": True} for prompt in PROMPTS
    ]
    plain, guessed = run(spec, *requests), run(with_draft, *requests)
    assert [one.token_ids for one in guessed] == [one.token_ids for one in plain]


def test_a_draft_of_another_vocabulary_stops_the_load(spec: ReplicaSpec, tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    write_tiny_model(path, letters=range(126, 32, -1))
    with_draft = msgspec.structs.replace(
        guessing(spec, speculation="draft"), draft_files=(str(path),)
    )
    with pytest.raises(EngineError, match=r"cannot guess for this model: its token 260 is not"):
        run(with_draft)
    write_tiny_model(path, letters=range(256))
    with pytest.raises(EngineError, match=r"it has 516 tokens, the model 354"):
        run(with_draft)


def test_a_deployment_that_wants_a_draft_must_name_one(spec: ReplicaSpec) -> None:
    with pytest.raises(EngineError, match="names none"):
        run(guessing(spec, speculation="draft"))


@pytest.fixture(scope="module")
def adapted(spec: ReplicaSpec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaSpec]:
    folder = tmp_path_factory.mktemp("loras")
    loras = []
    for seed in range(2):
        write_lora(folder / f"{seed}.gguf", seed=seed)
        loras.append(LoraAdapter(name=f"lora{seed}", file=str(folder / f"{seed}.gguf")))
    yield msgspec.structs.replace(spec, loras=tuple(loras))


@pytest.mark.parametrize("speculation", ["", "ngram"])
def test_adapters_side_by_side_give_the_texts_they_give_alone(
    adapted: ReplicaSpec, speculation: str
) -> None:
    requests: list[dict[str, object]] = [
        {"prompt": PROMPTS[0], "ignore_eos": True, "loras": loras}
        for loras in ((), ((0, 1.0),), ((1, 1.0),), ((0, 1.0), (1, 0.5)))
    ]
    together = run(guessing(adapted, speculation=speculation), *requests)
    alone = run(adapted, *requests, is_together=False)
    assert [one.token_ids for one in together] == [one.token_ids for one in alone]
    assert len({tuple(one.token_ids) for one in alone}) == 4
    assert all(one.done.num_cached_tokens == 0 for one in (*together, *alone))
