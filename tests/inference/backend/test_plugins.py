"""Samplers that an operator adds."""

from collections.abc import Iterator
from importlib import metadata
from typing import Any

import numpy as np
import pytest

from inference.backend import plugins
from inference.backend.base import Sampler
from inference.backend.fake import FIRST_BYTE, FakeBackend, FakeModel
from inference.backend.llama import LlamaBackend
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.sampling import PluginSampler, SamplingParams
from tests.inference.backend.jobs import make_job

MODULE = "tests.inference.backend.no_repeat_ngram"
NGRAM = f"{MODULE}:no_repeat_ngram"


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both plug-ins of the example module."""
    plugins.installed_plugins.cache_clear()
    monkeypatch.setenv(plugins.VARIABLE, f" {NGRAM}, {MODULE}:failing,")
    yield
    plugins.installed_plugins.cache_clear()


def open_with(
    backend: LlamaBackend | FakeBackend, name: str, *, temperature: float = 0.0, **params: Any
) -> Sampler:
    sampling = SamplingParams(
        temperature=temperature,
        seed=1,
        plugins=(PluginSampler(name=name, params=params),),
    )
    return backend.open_sampler(make_job(sampling=sampling))


def say(backend: LlamaBackend, sampler: Sampler, best: list[int], count: int) -> list[int]:
    row = np.full(backend.model.num_vocab, -20.0, np.float32)
    row[best] = 5.0 - np.arange(len(best))
    tokens = [sampler.sample(row.copy()).token for _ in range(count)]
    sampler.close()
    return tokens


def test_plugins_are_named_in_the_facts(backend: LlamaBackend) -> None:
    assert set(plugins.installed_plugins()) == {"no_repeat_ngram", "failing"}
    assert set(FakeModel().facts().sampler_plugins) == {"no_repeat_ngram", "failing"}


@pytest.mark.parametrize("temperature", [0.0, 0.01])
def test_a_plugin_edits_the_logits_of_its_own_sequence(
    backend: LlamaBackend, temperature: float
) -> None:
    one = open_with(backend, "no_repeat_ngram", temperature=temperature, size=2)
    other = open_with(backend, "no_repeat_ngram", temperature=temperature)
    assert say(backend, one, [70, 71, 72], 5) == [70, 70, 71, 70, 72]
    assert say(backend, other, [70, 71, 72], 5) == [70, 70, 70, 71, 70]


def test_the_prompt_counts_as_text(backend: LlamaBackend) -> None:
    sampling = SamplingParams(
        temperature=0, plugins=(PluginSampler(name="no_repeat_ngram", params={"size": 2}),)
    )
    sampler = backend.open_sampler(make_job((70, 71, 70), sampling=sampling))
    assert say(backend, sampler, [71, 72], 1) == [72]


def test_logprobs_stay_those_of_the_model(backend: LlamaBackend) -> None:
    sampling = SamplingParams(
        temperature=0, plugins=(PluginSampler(name="no_repeat_ngram", params={"size": 2}),)
    )
    job = make_job((70, 71, 70), sampling=sampling, num_logprobs=1)
    sampler = backend.open_sampler(job)
    row = np.full(backend.model.num_vocab, -20.0, np.float32)
    row[[71, 72]] = 3.0, 2.0
    choice = sampler.sample(row)
    sampler.close()
    assert choice.token == 72
    assert choice.logprob is not None
    assert choice.logprob.top[0].id == 71
    assert choice.logprob.chosen.logprob == pytest.approx(-1.3133, abs=1e-3)


def test_the_fake_runs_plugins_too() -> None:
    backend = FakeBackend(FakeModel())
    sampler = open_with(backend, "no_repeat_ngram", size=2)
    row = np.zeros(FIRST_BYTE + 256, np.float32)
    row[70] = 1.0
    assert [sampler.sample(row.copy()).token for _ in range(3)] == [70, 70, 0]


def test_a_refused_parameter_is_the_clients_mistake(backend: LlamaBackend) -> None:
    with pytest.raises(EngineError, match="size must be an integer") as caught:
        open_with(backend, "no_repeat_ngram", size=1)
    assert caught.value.code is ErrorCode.INVALID_SAMPLING
    assert caught.value.param == "plugins"


def test_an_unknown_name_is_refused(backend: LlamaBackend) -> None:
    with pytest.raises(EngineError, match="no sampler plug-in named 'magic'"):
        open_with(backend, "magic")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "'failing' failed with KeyError"),
        ({"value": "nan"}, "no number"),
        ({"value": "inf"}, "no number"),
    ],
)
def test_a_failure_tells_the_plugin_and_no_secret(
    backend: LlamaBackend, params: dict[str, Any], words: str
) -> None:
    sampler = open_with(backend, "failing", **params)
    with pytest.raises(EngineError, match=words) as caught:
        say(backend, sampler, [70], 9)
    assert caught.value.code is ErrorCode.PLUGIN_FAILED
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no.such.module:thing", "ModuleNotFoundError"),
        (f"{MODULE}:missing", "AttributeError"),
        (MODULE, "AttributeError"),
        (f"{MODULE}:NOT_CALLABLE", "cannot be called"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_says_why(
    monkeypatch: pytest.MonkeyPatch, path: str, words: str
) -> None:
    monkeypatch.setenv(plugins.VARIABLE, path)
    with pytest.raises(EngineError, match=words) as caught:
        plugins.installed_plugins()
    assert path in caught.value.message


def test_entry_points_are_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint(name="short-name", value=NGRAM, group=plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    monkeypatch.delenv(plugins.VARIABLE)
    assert list(plugins.installed_plugins()) == ["short-name"]
