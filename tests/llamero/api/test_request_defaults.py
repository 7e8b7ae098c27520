"""What a deployment has for requests that say nothing: on every route, and only then."""

from typing import Any

import msgspec
import pytest

from inference.protocol.replicas import InfillTokens
from inference.protocol.sampling import SamplingParams
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FACTS, FakeDispatcher, make_served

DEFAULTS = {
    "temperature": 1.5,
    "top_k": 7,
    "top_p": 0.25,
    "repeat_penalty": 1.25,
    "seed": 42,
    "n_predict": 6,
    "n_keep": 3,
    "samplers": ["top_k", "temperature"],
}
CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", CHAT),
    ("/chat/completions", CHAT),
    ("/v1/completions", {"prompt": "Hi"}),
    ("/v1/responses", {"input": "Hi", "store": False}),
    ("/completion", {"prompt": "Hi"}),
    ("/infill", {"input_prefix": "a", "input_suffix": "z"}),
]
MESSAGES = ("/v1/messages", CHAT | {"max_tokens": 9})
every_route = pytest.mark.parametrize(("url", "body"), [*ROUTES, MESSAGES])


@pytest.fixture(autouse=True)
def steady(served: list[ServedModel], dispatcher: FakeDispatcher) -> None:
    """A model whose deployment has defaults, and that fills gaps."""
    infill = InfillTokens(prefix=11, suffix=12, middle=13)
    dispatcher.model_facts = msgspec.structs.replace(FACTS, infill=infill)
    served.append(make_served("steady", pk=4, request_defaults=DEFAULTS))


@every_route
async def test_they_hold_where_a_request_says_nothing(
    dispatcher: FakeDispatcher, url: str, body: dict[str, Any]
) -> None:
    answer = await post(url, body | {"model": "steady", "temperature": None, "seed": None})
    assert answer.status == 200
    job = dispatcher.jobs[0]
    sampling = job.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (1.5, 7, 0.25)
    assert (sampling.repeat_penalty, sampling.seed) == (1.25, 42)
    assert sampling.samplers == ("top_k", "temperature")
    assert job.num_keep == 3
    # What no default is set for is as it was.
    assert sampling.min_p == SamplingParams().min_p
    # Anthropic's requests always name a bound.
    assert job.max_tokens == body.get("max_tokens", 6)


@every_route
async def test_what_a_request_says_counts(
    dispatcher: FakeDispatcher, url: str, body: dict[str, Any]
) -> None:
    said = {"temperature": 0, "top_k": 0, "seed": 7, "n_keep": 0, "sampler_seq": "pt"}
    length = "max_output_tokens" if url == "/v1/responses" else "max_tokens"
    assert (await post(url, body | said | {"model": "steady", length: 8})).status == 200
    job = dispatcher.jobs[0]
    assert (job.sampling.temperature, job.sampling.top_k, job.sampling.seed) == (0, 0, 7)
    assert (job.num_keep, job.max_tokens) == (0, 8)
    assert job.sampling.samplers == ("top_p", "temperature")


@pytest.mark.parametrize("name", ["n_predict", "max_tokens", "max_completion_tokens"])
async def test_a_bound_by_any_name_is_a_bound(dispatcher: FakeDispatcher, name: str) -> None:
    for length in (9, -1):
        await post("/v1/chat/completions", CHAT | {"model": "steady", name: length})
    assert dispatcher.jobs[0].max_tokens == 9
    assert dispatcher.jobs[1].max_tokens is None


async def test_a_random_seed_may_be_asked_for(dispatcher: FakeDispatcher) -> None:
    for _ in range(2):
        await post("/completion", {"model": "steady", "prompt": "Hi", "seed": -1})
    assert len({job.sampling.seed for job in dispatcher.jobs} | {42}) == 3


async def test_choices_differ_and_come_again(dispatcher: FakeDispatcher) -> None:
    for _ in range(2):
        await post("/v1/completions", {"model": "steady", "prompt": "Hi", "n": 2})
    seeds = [job.sampling.seed for job in dispatcher.jobs]
    assert seeds[0] == 42 != seeds[1]
    assert seeds[:2] == seeds[2:]


async def test_a_default_bound_gives_way_to_a_least_length(dispatcher: FakeDispatcher) -> None:
    asked = {"model": "steady", "prompt": "Hi", "min_tokens": 20}
    assert (await post("/v1/completions", asked)).status == 200
    assert dispatcher.jobs[0].max_tokens == 20


@pytest.mark.parametrize(("url", "body"), ROUTES)
async def test_a_default_may_be_no_bound(
    served: list[ServedModel], dispatcher: FakeDispatcher, url: str, body: dict[str, Any]
) -> None:
    served.append(make_served("endless", pk=5, request_defaults={"n_predict": -1}))
    assert (await post(url, body | {"model": "endless"})).status == 200
    assert dispatcher.jobs[0].max_tokens is None


async def test_a_response_repeats_what_was_in_effect() -> None:
    asked = {"model": "steady", "input": "Hi", "store": False}
    document = (await post("/v1/responses", asked)).json()
    told = (document["temperature"], document["top_p"], document["max_output_tokens"])
    assert told == (1.5, 0.25, 6)


async def test_generation_settings_tell_them() -> None:
    document = (await post("/m/steady/completion", {"prompt": "Hi"})).json()
    settings = document["generation_settings"]
    assert DEFAULTS.items() <= settings.items()
    assert settings["max_tokens"] == 6


async def test_props_tell_them() -> None:
    document = (await get("/m/steady/props")).json()["default_generation_settings"]
    assert DEFAULTS.items() <= document["params"].items()
    plain = (await get("/m/smol/props")).json()["default_generation_settings"]["params"]
    assert (plain["seed"], plain["n_predict"], plain["temperature"]) == (-1, -1, 0.8)
    assert plain["n_keep"] == 0
