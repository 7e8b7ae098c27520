"""A grammar beside every other wish of a job: it ends, or fails clearly, and is never left."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.backend.grammar_sampler import Constraint, Permission, Spelling
from inference.backend.grammars import MAX_GRAMMARS, Grammars
from inference.backend.lazy_grammar import open_constraint
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import blamed_field
from inference.protocol.sampling import GrammarTrigger, SamplingParams
from inference.text.json_schema import schema_to_grammar
from tests.inference.backend.jobs import make_job, make_spec

EXPLODING = 'root ::= "a" root "b" | "a" root "c" | ""'
ANY_JSON = schema_to_grammar({}, param="x")


def token_of(text: str) -> int:
    """Give the tiny model's token of one byte."""
    return 3 + text.encode()[0]


def letter_of(text: str) -> int:
    """Give the tiny model's other token of one letter."""
    return 3 + 256 + 1 + ord(text) - 33


def write(backend: LlamaBackend, num_tokens: int = 40, **fields: Any) -> tuple[str, bool]:
    """Sample from noise; gives the text, and whether it ended by itself."""
    noise = np.random.default_rng(0)
    sampler = backend.open_sampler(make_job(**fields))
    data = b""
    try:
        for _ in range(num_tokens):
            row = noise.standard_normal(backend.model.num_vocab).astype(np.float32)
            choice = sampler.sample(row)
            if choice.is_end or backend.model.is_end_of_generation(choice.token):
                return data.decode("utf-8", "replace"), True
            data += backend.model.text_bytes(choice.token)
    finally:
        sampler.close()
    return data.decode("utf-8", "replace"), False


def sampling(grammar: str, **fields: Any) -> SamplingParams:
    return SamplingParams(grammar=grammar, seed=1, **{"temperature": 1.0, **fields})


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("fields", [{}, {"ignore_eos": True}, {"min_tokens": 30}])
def test_a_complete_text_ends_whatever_else_is_asked(
    backend: LlamaBackend, temperature: float, fields: dict[str, Any]
) -> None:
    params = sampling('root ::= "yes"', temperature=temperature)
    assert write(backend, sampling=params, **fields) == ("yes", True)


def test_min_tokens_go_on_where_the_grammar_can(backend: LlamaBackend) -> None:
    text, is_end = write(backend, sampling=sampling('root ::= "ab"+'), min_tokens=20)
    assert len(text) >= 20
    assert set(text[::2] + text[1::2]) == {"a", "b"}
    text, is_end = write(backend, sampling=sampling('root ::= "ab"+'), ignore_eos=True)
    assert (text, is_end) == ("ab" * 20, False)


def test_a_ban_that_leaves_nothing_fails_clearly(backend: LlamaBackend) -> None:
    bans = tuple((token, None) for token in (token_of("y"), letter_of("y")))
    with pytest.raises(EngineError) as caught:
        write(backend, sampling=sampling('root ::= "xyz"', logit_bias=bans))
    assert caught.value.code is ErrorCode.INVALID_SAMPLING
    assert write(backend, sampling=sampling('root ::= [xy] "z"', logit_bias=bans)) == ("xz", True)


def test_a_grammar_that_only_wants_what_the_model_lacks_fails_clearly(
    backend: LlamaBackend,
) -> None:
    with pytest.raises(EngineError):
        write(backend, sampling=sampling('root ::= "x" root "y"'), num_tokens=2000)
    with pytest.raises(EngineError) as caught:
        backend.open_sampler(make_job(sampling=sampling("root ::= <|none|>")))
    assert caught.value.code is ErrorCode.INVALID_GRAMMAR


def test_log_probabilities_are_those_before_the_grammar(backend: LlamaBackend) -> None:
    job = make_job(sampling=sampling('root ::= "q"', temperature=0.0), num_logprobs=2)
    row = np.zeros(backend.model.num_vocab, np.float32)
    row[token_of("a")] = 5.0
    choice = backend.open_sampler(job).sample(row)
    assert choice.token == token_of("q")
    assert choice.logprob
    assert choice.logprob.top[0].id == token_of("a")
    assert choice.logprob.chosen.logprob < -5.0


def test_the_same_seed_writes_the_same_text(backend: LlamaBackend) -> None:
    texts = {write(backend, sampling=sampling(ANY_JSON)) for _ in range(3)}
    assert len(texts) == 1


def test_an_exploding_grammar_fails_its_own_job_at_a_bound(backend: LlamaBackend) -> None:
    job = make_job(sampling=sampling(EXPLODING, grammar_field="guided_regex"))
    sampler = backend.open_sampler(job)
    row = np.full(backend.model.num_vocab, -20.0, np.float32)
    row[token_of("a")] = 20.0
    with pytest.raises(EngineError) as caught:
        for _ in range(60):
            sampler.sample(row.copy())
    assert caught.value.code is ErrorCode.INVALID_GRAMMAR
    assert blamed_field(caught.value, job) == "guided_regex"


def test_compiled_grammars_are_kept_within_a_bound(model: LlamaModel) -> None:
    grammars = Grammars(model)
    first = grammars.find('root ::= "0"')
    assert grammars.find('root ::= "0"') is first
    for number in range(MAX_GRAMMARS):
        grammars.find(f'root ::= "x{number}"')
    assert grammars.find('root ::= "0"') is not first


@pytest.mark.parametrize("text", ["", '{"', '{"a', '{"a":[1', '{"a":[1.5e', "tru", '"\\u00'])
def test_all_tokens_at_once_are_judged_like_each_alone(model: LlamaModel, text: str) -> None:
    judge_all(model, model.grammars, text.encode(), ANY_JSON)


def judge_all(model: LlamaModel, grammars: Grammars, text: bytes, grammar: str) -> int:
    constraint = Constraint(grammars.find(grammar), Spelling(model))
    constraint.begin_with(text)
    constraint._budget.left = 10**9
    row = np.zeros(model.num_vocab, np.float32)
    constraint.restrict(row)
    alone = [constraint.allows(token) for token in range(model.num_vocab)]
    assert (row > -np.inf).tolist() == alone
    return sum(alone)


@pytest.mark.model
def test_a_real_vocabulary_is_judged_like_each_token_alone(smollm2_path: Path) -> None:
    model = load_model(make_spec(smollm2_path), lambda _: None)
    short = schema_to_grammar({"type": "string", "maxLength": 20}, param="x")
    assert judge_all(model, model.grammars, b'{"a": "', ANY_JSON) > 40_000
    assert judge_all(model, model.grammars, b'{"a"', ANY_JSON) < 20
    assert judge_all(model, model.grammars, '"é\\n\U0001f642'.encode()[:-1], short) <= 64
    assert judge_all(model, model.grammars, b'"abcdefgh', short) > 30_000
    # Control tokens spell nothing, so only their ids can mean them.
    assert judge_all(model, model.grammars, b"", 'root ::= <|im_start|> "x" | <[2]>') == 1


def feed(constraint: Permission, model: LlamaModel, text: str) -> None:
    for byte in text.encode():
        assert constraint.allows(3 + byte), chr(byte)
        constraint.accept(3 + byte)


def lazy(
    model: LlamaModel, *triggers: GrammarTrigger, preserved: tuple[str, ...] = ()
) -> Permission:
    params = SamplingParams(
        grammar='root ::= "<f>" [0-9]+ "</f>"',
        is_grammar_lazy=True,
        grammar_triggers=triggers,
    )
    constraint = open_constraint(model, model.grammars, params)
    assert constraint
    return constraint


@pytest.mark.parametrize(
    "trigger", [GrammarTrigger(word="<f>"), GrammarTrigger(pattern=r"(?:\w|\s)*(<f>)")]
)
def test_a_lazy_grammar_sleeps_until_its_trigger(
    model: LlamaModel, trigger: GrammarTrigger
) -> None:
    constraint = lazy(model, trigger)
    feed(constraint, model, 'free <text, {"x"} é <')
    assert constraint.may_end
    feed(constraint, model, " <f>12")
    assert not constraint.allows(token_of("x"))
    assert not constraint.may_end
    assert not constraint.allows(2)
    feed(constraint, model, "3</f>")
    row = np.zeros(model.num_vocab, np.float32)
    constraint.restrict(row)
    assert np.flatnonzero(row > -np.inf).tolist() == [2]


def test_a_trigger_that_the_grammar_cannot_begin_with_is_refused(model: LlamaModel) -> None:
    constraint = lazy(model, GrammarTrigger(word="<g>"))
    feed(constraint, model, "x <g")
    row = np.zeros(model.num_vocab, np.float32)
    assert not constraint.allows(token_of(">"))
    constraint.restrict(row)
    assert np.flatnonzero(row == -np.inf).tolist() == [token_of(">")]
    feed(constraint, model, "h free again")


def test_a_lazy_grammar_is_sampled(backend: LlamaBackend) -> None:
    params = sampling(
        'root ::= "q" [0-9]{3}',
        is_grammar_lazy=True,
        grammar_triggers=(GrammarTrigger(token=token_of("q")),),
        logit_bias=((token_of("q"), 3.0), (2, -100.0)),
    )
    text, is_end = write(backend, num_tokens=400, sampling=params)
    before, _, after = text.partition("q")
    assert is_end
    assert len(before) > 0
    assert len(after) == 3
    assert after.isdigit()


@pytest.mark.parametrize(
    ("triggers", "param"),
    [
        ((), "grammar_triggers"),
        ((GrammarTrigger(token=10**6),), "grammar_triggers"),
        ((GrammarTrigger(pattern="(?=x)"),), "grammar_triggers"),
        (tuple(GrammarTrigger(word=f"{i}") for i in range(65)), "grammar_triggers"),
    ],
)
def test_triggers_that_cannot_work_are_refused(
    model: LlamaModel, triggers: tuple[GrammarTrigger, ...], param: str
) -> None:
    with pytest.raises(EngineError) as caught:
        lazy(model, *triggers)
    assert caught.value.param == param


def test_preserved_tokens_are_spelled_in_grammar_and_text(model: LlamaModel) -> None:
    grammar = model.grammars.find('root ::= "<s>" "x"')
    constraint = Constraint(grammar, Spelling(model, ("<s>", "no such token", "</s>")))
    row = np.zeros(model.num_vocab, np.float32)
    constraint.restrict(row)
    assert np.flatnonzero(row > -np.inf).tolist() == [1, token_of("<"), letter_of("<")]
    constraint.accept(1)
    assert constraint.allows(token_of("x"))
    plain = Constraint(grammar, Spelling(model))
    assert not plain.allows(1)
