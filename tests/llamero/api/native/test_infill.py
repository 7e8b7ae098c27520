"""Filling gaps: what stands around one, in the model's order, as much as fits."""

from typing import Any

import msgspec
import pytest

from inference.protocol.replicas import InfillTokens, ModelFacts
from llamero.api.infill import GapTokens, fit, lay_out
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import FACTS, FakeDispatcher

URL = "/infill"
PRE, SUF, MID, REPO, FILE = 11, 12, 13, 14, 15
PLAIN = InfillTokens(prefix=PRE, suffix=SUF, middle=MID)
FULL = InfillTokens(prefix=PRE, suffix=SUF, middle=MID, repository=REPO, file=FILE)
GAP = {"input_prefix": "a", "input_suffix": "z"}


def facts_with(infill: InfillTokens, **changes: Any) -> ModelFacts:
    return msgspec.structs.replace(FACTS, infill=infill, **changes)


def ids(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


async def test_a_gap_is_laid_out_as_the_model_was_trained(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(PLAIN)
    document = (await post(URL, GAP | {"prompt": "b"})).json()
    assert dispatcher.jobs[0].prompt_tokens == (1, PRE, *ids("ab"), SUF, *ids("z"), MID)
    assert document["content"] == "Hello"
    assert document["generation_settings"]["temperature"] == pytest.approx(0.8)


async def test_the_suffix_may_come_first(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(PLAIN, num_prefix_tokens=0)
    await post(URL, GAP | {"spm_infill": True})
    assert dispatcher.jobs[0].prompt_tokens == (SUF, *ids("z"), PRE, *ids("a"), MID)


async def test_other_files_come_before_with_their_names(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(FULL, num_prefix_tokens=0)
    extra = [{"filename": "h", "text": "H"}, {"text": "T"}]
    await post(URL, GAP | {"input_extra": extra})
    assert dispatcher.jobs[0].prompt_tokens == (
        *(REPO, *ids("myproject\n")),
        *(FILE, *ids("h\n"), *ids("H")),
        *(FILE, *ids("tmp\n"), *ids("T")),
        *(FILE, *ids("filename\n")),
        *(PRE, *ids("a"), SUF, *ids("z"), MID),
    )


async def test_without_a_file_token_a_line_stands_between(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(PLAIN, num_prefix_tokens=0)
    await post(URL, GAP | {"input_extra": [{"filename": "h", "text": "H"}]})
    assert dispatcher.jobs[0].prompt_tokens[:-4] == (*ids("\n\n--- snippet ---\n\nH"), PRE)


async def test_control_tokens_in_code_are_text(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(PLAIN)
    await post(URL, GAP)
    assert not any(question.parse_special for question in dispatcher.questions[:1])


async def test_the_requests_of_editors_are_answered(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(FULL)
    limits = {"cache_prompt": True, "t_max_prompt_ms": 500, "t_max_predict_ms": 1500}
    extra = {"input_extra": [{"filename": "h", "text": "H", "time": [1, 2]}]}
    warming = {"n_predict": 0, "temperature": 0.0, "samplers": [], "response_fields": [""]}
    assert (await post(URL, GAP | limits | extra | warming)).json() == {}
    asked = {
        "id_slot": 0,
        "n_predict": 16,
        "n_indent": 0,
        "top_k": 40,
        "top_p": 0.99,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "response_fields": ["content", "timings/prompt_n", "truncated", "tokens_cached"],
    }
    document = (await post(URL, GAP | limits | extra | asked)).json()
    assert list(document) == asked["response_fields"]
    assert dispatcher.jobs[1].sampling.samplers == ("top_k", "top_p", "infill")


async def test_it_streams_too(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(PLAIN)
    frames = (await post(URL, GAP | {"stream": True})).chunks
    assert [frame["content"] for frame in frames] == ["Hel", "lo", ""]


@pytest.mark.parametrize("infill", [InfillTokens(), InfillTokens(prefix=PRE, suffix=SUF)])
async def test_a_model_that_cannot_says_what_it_lacks(
    dispatcher: FakeDispatcher, infill: InfillTokens
) -> None:
    dispatcher.model_facts = facts_with(infill)
    answer = await post(URL, GAP)
    assert (answer.status, answer.error["type"]) == (501, "not_supported_error")
    assert "middle" in answer.error["message"]
    answer = await post("/v1/completions", {"model": "smol", "prompt": "a", "suffix": "z"})
    assert (answer.status, answer.error["param"]) == (400, "suffix")
    assert dispatcher.jobs == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input_prefix": None}, "input_prefix"),
        ({"input_suffix": 5}, "input_suffix"),
        ({"prompt": ["a"]}, "prompt"),
        ({"input_extra": {}}, "input_extra"),
        ({"input_extra": [{}]}, "input_extra[0].text"),
        ({"input_extra": [{"filename": "ok"}]}, "input_extra[0].text"),
        ({"input_extra": [{"filename": 1, "text": "x"}]}, "input_extra[0].filename"),
        ({"input_extra": [{"text": "x"}, "y"]}, "input_extra[1]"),
        ({"n_predict": -3}, "n_predict"),
        ({"spm_infill": 1}, "spm_infill"),
    ],
)
async def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    answer = await post(URL, GAP | fields)
    assert (answer.status, answer.error["param"]) == (400, param)


def test_what_is_far_from_the_gap_goes_first() -> None:
    facts = facts_with(PLAIN, context_length=40, num_prefix_tokens=1)
    gap = GapTokens(
        before=tuple(range(100, 200)), behind=tuple(range(200, 300)), extra=tuple(range(300, 350))
    )
    kept = fit(gap, facts, num_answer=8)
    assert (len(kept.before), len(kept.behind), kept.extra) == (21, 7, ())
    assert kept.before[-1] == 199
    assert kept.behind[0] == 200
    assert len(lay_out(kept, facts)) + 8 == 40


def test_what_one_side_leaves_the_other_takes_then_the_files() -> None:
    facts = facts_with(PLAIN, context_length=44, num_prefix_tokens=1)
    gap = GapTokens(before=(1, 2), behind=tuple(range(20)), extra=tuple(range(300, 350)))
    kept = fit(gap, facts, num_answer=8)
    assert (len(kept.before), len(kept.behind)) == (2, 20)
    assert kept.extra == tuple(range(340, 350))


async def test_what_cannot_fit_is_an_error(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(PLAIN, context_length=20)
    answer = await post(URL, GAP | {"prompt": "b" * 30})
    assert (answer.status, answer.error["type"]) == (400, "exceed_context_size_error")


async def test_a_suffix_fills_on_the_other_route(dispatcher: FakeDispatcher) -> None:
    dispatcher.model_facts = facts_with(PLAIN)
    body = {"model": "smol", "prompt": ["a", "b"], "suffix": "z", "n": 2}
    assert len((await post("/v1/completions", body)).json()["choices"]) == 4
    prompts = [job.prompt_tokens for job in dispatcher.jobs]
    assert prompts[0] == prompts[1] == (1, PRE, *ids("a"), SUF, *ids("z"), MID)
    assert prompts[2] == (1, PRE, *ids("b"), SUF, *ids("z"), MID)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": [5, 6]}, "prompt"),
        ({"echo": True}, "echo"),
        ({"prompt_logprobs": 0}, "prompt_logprobs"),
        ({"suffix": ["z"]}, "suffix"),
    ],
)
async def test_what_a_suffix_excludes(
    dispatcher: FakeDispatcher, fields: dict[str, Any], param: str
) -> None:
    dispatcher.model_facts = facts_with(PLAIN)
    body = {"model": "smol", "prompt": "a", "suffix": "z"} | fields
    answer = await post("/v1/completions", body)
    assert (answer.status, answer.error["param"]) == (400, param)
