"""Samplers, their order, seeds of choices, and plug-ins, on their way into jobs."""

from typing import Any

import msgspec
import pytest

from inference.protocol.sampling import PluginSampler, SamplingParams
from tests.llamero.api import fakes
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FakeDispatcher

URL = "/completion"
DEFAULT = SamplingParams().samplers
EVERY: dict[str, Any] = {
    "temperature": 0.5,
    "dynatemp_range": 0.25,
    "dynatemp_exponent": 2.0,
    "top_k": 7,
    "top_p": 0.5,
    "min_p": 0.25,
    "typical_p": 0.75,
    "top_n_sigma": 1.5,
    "xtc_probability": 0.5,
    "xtc_threshold": 0.25,
    "repeat_last_n": -1,
    "repeat_penalty": 1.5,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "dry_multiplier": 0.5,
    "dry_base": 1.25,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 32,
    "dry_sequence_breakers": ["\n", "!"],
    "mirostat": 2,
    "mirostat_tau": 4.0,
    "mirostat_eta": 0.5,
    "adaptive_target": 0.5,
    "adaptive_decay": 0.75,
    "min_keep": 2,
    "seed": 0,
}


async def test_every_field_is_in_effect_and_told(dispatcher: FakeDispatcher) -> None:
    document = (await post(URL, {"prompt": "x", **EVERY})).json()
    sampling = msgspec.json.decode(msgspec.json.encode(dispatcher.jobs[0].sampling))
    told = document["generation_settings"]
    for name, value in EVERY.items():
        assert told[name] == value
        if value != getattr(SamplingParams(), name):
            assert sampling[name] == value
    assert told["samplers"] == [*DEFAULT, "adaptive_p"]
    defaults = (await get("/props")).json()["default_generation_settings"]["params"]
    assert set(defaults) == set(told)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"samplers": "edskypmxta"}, (*DEFAULT, "adaptive_p")),
        ({"sampler_seq": "kt"}, ("top_k", "temperature")),
        ({"samplers": ["top_k"], "sampler_seq": "t"}, ("top_k",)),
        ({"samplers": ["Top-K", "topp", "min-p", "nucleus"]}, ("top_k", "top_p", "min_p", "top_p")),
        (
            {"samplers": ["typical_p", "typ-p", "temp", "XTC"]},
            ("typ_p", "typ_p", "temperature", "xtc"),
        ),
        ({"samplers": ["top_k", "top_p", "infill"]}, ("top_k", "top_p", "infill")),
        ({"samplers": "kpi"}, ("top_k", "top_p", "infill")),
        ({"samplers": ["top_k", "tfs_z", "typical_p"]}, ("top_k", "typ_p")),
        ({"samplers": "kft"}, ("top_k", "temperature")),
        ({"samplers": []}, ()),
        ({"samplers": "", "adaptive_target": 0.1}, ("adaptive_p",)),
        ({"samplers": "ak", "adaptive_target": 0.1}, ("adaptive_p", "top_k")),
        ({"adaptive_target": -1}, DEFAULT),
    ],
)
async def test_the_order_may_be_names_or_letters(
    dispatcher: FakeDispatcher, fields: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert (await post(URL, {"prompt": "x", **fields})).status == 200
    assert dispatcher.jobs[0].sampling.samplers == expected


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"samplers": ["warmth"]}, "samplers"),
        ({"samplers": "w"}, "samplers"),
        ({"samplers": [5]}, "samplers"),
        ({"samplers": [["top_k"]]}, "samplers"),
        ({"samplers": "k" * 33}, "samplers"),
        ({"samplers": {"top_k": 1}}, "samplers"),
        ({"sampler_seq": "z"}, "sampler_seq"),
        ({"sampler_seq": ["k"]}, "sampler_seq"),
        ({"temperature": 1e7}, "temperature"),
        ({"dynatemp_range": -1}, "dynatemp_range"),
        ({"top_p": 1.01}, "top_p"),
        ({"min_p": -0.1}, "min_p"),
        ({"typical_p": "1"}, "typical_p"),
        ({"top_n_sigma": 101}, "top_n_sigma"),
        ({"xtc_probability": 2}, "xtc_probability"),
        ({"repeat_last_n": -2}, "repeat_last_n"),
        ({"repeat_penalty": 0}, "repeat_penalty"),
        ({"repeat_penalty": 1e-38}, "repeat_penalty"),
        ({"dry_base": 0.5}, "dry_base"),
        ({"dry_allowed_length": 1.5}, "dry_allowed_length"),
        ({"dry_sequence_breakers": [""]}, "dry_sequence_breakers"),
        ({"dry_sequence_breakers": ["x"] * 17}, "dry_sequence_breakers"),
        ({"dry_sequence_breakers": [5]}, "dry_sequence_breakers"),
        ({"mirostat": 3}, "mirostat"),
        ({"mirostat": True}, "mirostat"),
        ({"mirostat_tau": -1}, "mirostat_tau"),
        ({"adaptive_target": 1.5}, "adaptive_target"),
        ({"adaptive_decay": 1}, "adaptive_decay"),
        ({"min_keep": -1}, "min_keep"),
        ({"min_keep": 10**9}, "min_keep"),
        ({"seed": 2**64}, "seed"),
        ({"seed": -(2**63) - 1}, "seed"),
        ({"ignore_eos": 1}, "ignore_eos"),
        ({"min_tokens": -1}, "min_tokens"),
        ({"n_probs": 101}, "n_probs"),
        ({"logprobs": True}, "logprobs"),
        ({"post_sampling_probs": "yes"}, "post_sampling_probs"),
    ],
)
async def test_a_wrong_value_names_its_field(
    dispatcher: FakeDispatcher, fields: dict[str, Any], param: str
) -> None:
    for body in ({"prompt": "x", **fields}, {"prompt": "x", "stream": True, **fields}):
        answer = await post(URL, body)
        assert (answer.status, answer.error["param"]) == (400, param)
    assert dispatcher.jobs == []


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
@pytest.mark.parametrize("name", [n for n, value in EVERY.items() if isinstance(value, float)])
async def test_a_number_that_is_none_is_refused(
    dispatcher: FakeDispatcher, name: str, number: bytes
) -> None:
    answer = await post(URL, b'{"prompt": "x", "%s": %s}' % (name.encode(), number))
    assert answer.status == 400
    assert dispatcher.jobs == []


async def test_choices_have_seeds_of_their_own_and_the_first_the_requests(
    dispatcher: FakeDispatcher,
) -> None:
    for _ in range(2):
        answer = await post(URL, {"prompt": ["x", "y"], "n_cmpl": 3, "seed": 7})
    seeds = [job.sampling.seed for job in dispatcher.jobs]
    assert seeds == seeds[:3] * 4
    assert seeds[0] == 7
    assert len(set(seeds)) == 3
    assert [one["generation_settings"]["seed"] for one in answer.json()] == seeds[:6]


async def test_any_number_of_64_bits_is_a_seed_and_means_the_same_each_time(
    dispatcher: FakeDispatcher,
) -> None:
    wanted = [-2, -(2**63), 2**63 - 1, 2**64 - 1, 2**32]
    for seed in wanted * 2:
        assert (await post(URL, {"prompt": "x", "seed": seed})).status == 200
    seeds = [job.sampling.seed for job in dispatcher.jobs]
    assert seeds[: len(wanted)] == seeds[len(wanted) :]
    assert all(0 <= seed < 2**32 - 1 for seed in seeds)


async def test_n_probs_has_llama_servers_other_name(dispatcher: FakeDispatcher) -> None:
    await post(URL, {"prompt": "x", "logprobs": 3})
    await post(URL, {"prompt": "x", "logprobs": 3, "n_probs": 2})
    assert [job.num_logprobs for job in dispatcher.jobs] == [3, 2]


@pytest.fixture
def with_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas that have one plug-in."""
    facts = msgspec.structs.replace(fakes.FACTS, sampler_plugins=("ngram",))
    monkeypatch.setattr(fakes, "FACTS", facts)


@pytest.mark.usefixtures("with_plugin")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], ()),
        ([{"name": "ngram"}], (PluginSampler(name="ngram"),)),
        (
            [{"name": "ngram", "params": {"a": 1, "b": 0.5, "c": "x", "d": True}}],
            (PluginSampler(name="ngram", params={"a": 1, "b": 0.5, "c": "x", "d": True}),),
        ),
    ],
)
async def test_plugins_reach_the_job(
    dispatcher: FakeDispatcher, value: Any, expected: tuple[PluginSampler, ...]
) -> None:
    document = (await post(URL, {"prompt": "x", "plugins": value})).json()
    assert dispatcher.jobs[0].sampling.plugins == expected
    assert document["generation_settings"]["plugins"] == [
        {"name": plugin.name, "params": plugin.params} for plugin in expected
    ]
    assert (await get("/props")).json()["sampler_plugins"] == ["ngram"]


@pytest.mark.usefixtures("with_plugin")
@pytest.mark.parametrize(
    ("value", "param"),
    [
        ({}, "plugins"),
        ("ngram", "plugins"),
        ([{"name": "ngram"}] * 9, "plugins"),
        (["ngram"], "plugins[0]"),
        ([{"name": 5}], "plugins[0]"),
        ([{"name": "ngram"}, {"name": "other"}], "plugins[1].name"),
        ([{"name": "ngram", "params": []}], "plugins[0].params"),
        ([{"name": "ngram", "params": {"a": [1]}}], "plugins[0].params.a"),
        ([{"name": "ngram", "params": {"a": None}}], "plugins[0].params.a"),
        ([{"name": "ngram", "params": {"a": 10**30}}], "plugins[0].params.a"),
        ([{"name": "ngram", "params": {"a": "x" * 5000}}], "plugins[0].params.a"),
        ([{"name": "ngram", "params": {str(i): 1 for i in range(65)}}], "plugins[0].params"),
    ],
)
async def test_a_plugin_that_is_none_is_refused(
    dispatcher: FakeDispatcher, value: Any, param: str
) -> None:
    answer = await post(URL, {"prompt": "x", "plugins": value})
    assert (answer.status, answer.error["param"]) == (400, param)
    assert dispatcher.jobs == []
