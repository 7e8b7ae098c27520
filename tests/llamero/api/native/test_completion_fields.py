"""llama-server's fields of a generation: each does something, or is checked and does nothing."""

from typing import Any

import pytest

from inference.protocol.events import (
    Done,
    Event,
    FinishReason,
    Pace,
    Progress,
    Started,
    Timings,
    Tokens,
)
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import FakeDispatcher, say

URL = "/completion"
CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}
TIMED: list[Event] = [
    Started(slot=0, num_cached_tokens=1),
    Progress(2, 4, 10.0),
    Progress(4, 4, 20.0),
    Pace(Timings(20.0, 0.0, 3)),
    Tokens("a", (7,)),
    Pace(Timings(20.0, 5.0, 3)),
    Tokens("b", (8,)),
    Done(FinishReason.LENGTH, 4, 1, 2, timings=Timings(20.0, 5.0, 3)),
]
ALL_ROUTES: list[tuple[str, dict[str, Any]]] = [
    (URL, {"prompt": "Hi"}),
    ("/v1/completions", {"model": "smol", "prompt": "Hi"}),
    ("/v1/chat/completions", CHAT),
]


@pytest.mark.parametrize(("url", "body"), ALL_ROUTES)
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"n_keep": 7, "n_discard": 9}, {"num_keep": 7, "num_discard": 9}),
        ({"n_indent": 4}, {"min_indent": 4}),
        ({"t_max_predict_ms": 250}, {"line_limit_ms": 250}),
        ({"t_max_predict_ms": -1}, {"line_limit_ms": 0}),
        ({"timings_per_token": True, "stream": True}, {"is_timed": True}),
        ({"return_progress": True, "stream": True}, {"is_timed": True}),
        ({"timings_per_token": True}, {"is_timed": False}),
        ({"id_slot": 1, "n_cache_reuse": 64, "t_max_prompt_ms": 5, "backend_sampling": True}, {}),
    ],
)
async def test_a_field_reaches_the_job_on_every_route(
    dispatcher: FakeDispatcher,
    url: str,
    body: dict[str, Any],
    fields: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    assert (await post(url, body | fields)).status == 200
    job = dispatcher.jobs[0]
    assert {name: getattr(job, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_discard", -1),
        ("n_indent", -1),
        ("n_indent", 10**6),
        ("t_max_predict_ms", 1.5),
        ("timings_per_token", 1),
        ("return_progress", "yes"),
        ("id_slot", -2),
        ("id_slot", "0"),
        ("n_cache_reuse", -1),
        ("sse_ping_interval", -2),
        ("backend_sampling", "no"),
        ("verbose", 1),
    ],
)
async def test_a_wrong_value_is_named(name: str, value: Any) -> None:
    for url, body in ALL_ROUTES:
        answer = await post(url, body | {name: value})
        assert (answer.status, answer.error["param"]) == (400, name)


async def test_every_frame_has_the_pace_where_it_is_asked_for(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: TIMED
    body = {"prompt": "Hi!", "stream": True, "timings_per_token": True, "return_progress": True}
    *progress, one, two, last = (await post(URL, body)).chunks
    assert [frame["prompt_progress"]["processed"] for frame in progress] == [1, 2, 4]
    assert [frame["timings"]["prompt_n"] for frame in progress] == [0, 1, 3]
    assert [frame["timings"]["prompt_ms"] for frame in progress] == [0, 10, 20]
    assert (one["timings"]["predicted_n"], one["timings"]["predicted_per_second"]) == (1, 0)
    assert (two["timings"]["predicted_n"], two["timings"]["predicted_per_second"]) == (2, 200)
    assert last["timings"] == two["timings"]


async def test_frames_are_plain_otherwise(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: TIMED
    frames = (await post(URL, {"prompt": "Hi!", "stream": True})).chunks
    assert [set(frame) & {"timings", "prompt_progress"} for frame in frames] == [
        set(),
        set(),
        {"timings"},
    ]


@pytest.mark.parametrize(("url", "body"), ALL_ROUTES[1:])
async def test_chunks_have_pace_and_progress_too(
    dispatcher: FakeDispatcher, url: str, body: dict[str, Any]
) -> None:
    dispatcher.script = lambda job: TIMED
    asked = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "timings_per_token": True,
        "return_progress": True,
    }
    chunks = (await post(url, body | asked)).chunks
    told = [chunk["prompt_progress"]["processed"] for chunk in chunks if "prompt_progress" in chunk]
    assert told == [1, 2, 4]
    paces = [chunk["timings"]["predicted_n"] for chunk in chunks if "timings" in chunk]
    assert paces[:2] == [1, 2]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["timings"]["predicted_n"] == 2


async def test_progress_never_goes_back_where_another_replica_begins_anew(
    dispatcher: FakeDispatcher,
) -> None:
    dispatcher.script = lambda job: [*TIMED[:2], Started(2, 0), Progress(1, 4), *TIMED[2:]]
    body = {"prompt": "Hi!", "stream": True, "return_progress": True}
    frames = (await post(URL, body)).chunks
    told = [frame["prompt_progress"] for frame in frames if "prompt_progress" in frame]
    assert [one["processed"] for one in told] == [1, 2, 4]
    assert {one["cache"] for one in told} == {1}


async def test_the_settings_are_those_in_effect() -> None:
    body = {
        "prompt": "Hi",
        "n_predict": 3,
        "n_keep": 2,
        "n_discard": 8,
        "n_indent": 4,
        "t_max_predict_ms": 100,
        "ignore_eos": True,
        "logit_bias": [[5, False], [6, 1.5]],
        "stop": ["x"],
        "grammar": 'root ::= "a"',
        "samplers": ["top_k", "temperature"],
        "seed": 7,
    }
    settings = (await post(URL, body)).json()["generation_settings"]
    expected = {
        "n_predict": 3,
        "max_tokens": 3,
        "n_keep": 2,
        "n_discard": 8,
        "n_indent": 4,
        "t_max_predict_ms": 100,
        "stop": ["x"],
        "grammar": 'root ::= "a"',
        "samplers": ["top_k", "temperature"],
        "seed": 7,
        "lora": [],
        "speculative.types": "none",
        "timings_per_token": False,
        "adaptive_target": -1.0,
    }
    assert expected.items() <= settings.items()
    # What ends an answer is banned; null is minus infinity.
    assert settings["logit_bias"] == [
        {"token": 5, "bias": None},
        {"token": 6, "bias": 1.5},
        {"token": 2, "bias": None},
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["content"], {"content": "Hello"}),
        (["timings/predicted_n", "stop"], {"timings/predicted_n": 2, "stop": True}),
        (["missing", "content/x", "timings/"], {}),
    ],
)
async def test_fields_are_chosen_by_their_paths(
    wanted: list[str], expected: dict[str, Any]
) -> None:
    assert (await post(URL, {"prompt": "x", "response_fields": wanted})).json() == expected
    body = {"prompt": "x", "response_fields": wanted, "stream": True}
    last = (await post(URL, body)).chunks[-1]
    assert set(last) == set(expected)


async def test_a_verbose_answer_holds_the_native_one() -> None:
    for url, body in ALL_ROUTES[1:]:
        document = (await post(url, body | {"verbose": True})).json()
        assert "Hi" in document["__verbose"]["prompt"]
        assert document["__verbose"]["content"] == "Hello"
        assert "__verbose" not in (await post(url, body)).json()


async def test_the_first_token_takes_no_step(dispatcher: FakeDispatcher) -> None:
    end = Done(FinishReason.LENGTH, 4, 1, 1, timings=Timings(20.0, 0.5, 3))
    dispatcher.script = lambda job: [*say("a")[:-1], end]
    timings = (await post(URL, {"prompt": "x"})).json()["timings"]
    assert (timings["predicted_per_second"], timings["predicted_per_token_ms"]) == (0, 0)
