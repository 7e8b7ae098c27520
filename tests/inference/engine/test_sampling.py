"""What sampling and scoring mean to the engine: ends, failures, and nothing to generate."""

from collections.abc import Iterator

import pytest

from inference.backend import plugins
from inference.protocol.errors import ErrorCode
from inference.protocol.events import FinishReason, PromptLogprobs
from inference.protocol.sampling import PluginSampler, SamplingParams
from tests.inference.engine.fakes import Bench, make_job, say

FAILING = "tests.inference.backend.no_repeat_ngram:failing"


@pytest.fixture
def failing_plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A plug-in that fails at the third token."""
    plugins.installed_plugins.cache_clear()
    monkeypatch.setenv(plugins.VARIABLE, FAILING)
    yield
    plugins.installed_plugins.cache_clear()


@pytest.mark.parametrize("budget", [3, 100])
def test_a_prompt_may_be_scored_without_an_answer(budget: int) -> None:
    bench = Bench(step_token_budget=budget)
    job = make_job(prompt="hello there", max_tokens=0, num_prompt_logprobs=1)
    outcome = bench.answer(job)
    told = [event for event in outcome.events if isinstance(event, PromptLogprobs)]
    judged = [one.chosen.id for event in told for one in event.logprobs]
    assert judged == list(job.prompt_tokens)
    assert outcome.token_ids == []
    assert outcome.done.finish_reason is FinishReason.LENGTH
    assert (outcome.done.num_prompt_tokens, outcome.done.num_completion_tokens) == (11, 0)
    assert bench.backend.num_open_samplers == 0


def test_scores_run_beside_answers() -> None:
    bench = Bench(next_token=say("hello world", 5))
    bench.add(make_job("talks", "hello", max_tokens=None))
    for name in ("one", "two"):
        bench.add(make_job(name, "0123456789" * 5, max_tokens=0, num_prompt_logprobs=0))
    bench.run()
    assert bench.outcome("talks").text == "hello world"
    assert bench.outcome("one").done.num_prompt_tokens == 50


def test_a_score_that_is_cancelled_ends() -> None:
    bench = Bench(step_token_budget=4)
    bench.add(make_job(prompt="hello there", max_tokens=0, num_prompt_logprobs=1))
    bench.step()
    bench.engine.cancel("job")
    bench.run()
    assert bench.outcome("job").done.finish_reason is FinishReason.CANCELLED


@pytest.mark.usefixtures("failing_plugin")
def test_a_plugin_that_fails_costs_its_own_job_alone() -> None:
    bench = Bench(next_token=say("hello world", 5))
    sampling = SamplingParams(temperature=0, plugins=(PluginSampler(name="failing"),))
    bench.add(make_job("bad", "abcde", sampling=sampling, max_tokens=9))
    bench.add(make_job("good", "hello", max_tokens=None))
    bench.run()
    failed = bench.outcome("bad").failed
    assert failed.code == ErrorCode.PLUGIN_FAILED
    assert "'failing' failed with KeyError" in failed.message
    assert bench.outcome("good").text == "hello world"
    assert bench.backend.num_open_samplers == 0
