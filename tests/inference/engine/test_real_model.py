"""The whole engine on SmolLM2."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.protocol.events import Done, FinishReason, PromptLogprobs, Tokens
from inference.protocol.sampling import SamplingParams
from tests.inference.engine.replica import Replica, chat

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def replica(smollm2_path: Path) -> Iterator[Replica]:
    replica = Replica(smollm2_path)
    yield replica
    replica.loaded.runner.stop()


def test_a_chat_is_answered(replica: Replica) -> None:
    outcome = replica.answer(chat("What is the capital of France?"), max_tokens=32)
    assert "Paris" in outcome.text
    assert outcome.done.finish_reason is FinishReason.EOS
    assert "<|im_end|>" not in outcome.text


def test_answers_in_a_batch_equal_answers_alone(replica: Replica) -> None:
    prompts = [chat(f"Name {count} animals.") for count in (1, 2, 3, 4)]
    alone = [replica.answer(prompt, salt=f"alone {prompt}").text for prompt in prompts]
    ids = [replica.submit(prompt, salt=f"together {prompt}") for prompt in prompts]
    assert [replica.inbox.wait_for_end(job_id).text for job_id in ids] == alone


def test_a_warm_prompt_gives_the_cold_answer(replica: Replica) -> None:
    prompt = chat("Say hello to the world.")
    cold = replica.answer(prompt, salt="warm")
    warm = replica.answer(prompt, salt="warm")
    assert (cold.done.num_cached_tokens, warm.text) == (0, cold.text)
    assert warm.done.num_cached_tokens == warm.done.num_prompt_tokens - 1


@pytest.mark.parametrize("stream", [True, False])
def test_characters_of_several_tokens_come_whole(replica: Replica, stream: bool) -> None:
    sampling = SamplingParams(temperature=0, grammar='root ::= "🧑‍🚀é漢字"')
    outcome = replica.answer("x", sampling=sampling, max_tokens=40, stream=stream)
    assert outcome.text == "🧑‍🚀é漢字"
    assert all("\ufffd" not in piece for piece in outcome.pieces)


def test_a_forced_lead_byte_is_replaced_and_its_tail_dropped(replica: Replica) -> None:
    sampling = SamplingParams(temperature=0, logit_bias=((187, 100.0),))
    assert replica.answer("x", sampling=sampling, max_tokens=5).text == "\ufffd" * 4


def test_a_stop_string_ends_the_text_before_itself(replica: Replica) -> None:
    sampling = SamplingParams(temperature=0, grammar='root ::= "abc END def"')
    outcome = replica.answer("x", sampling=sampling, max_tokens=32, stop=("c EN",))
    assert (outcome.text, outcome.done.finish_reason) == ("ab", FinishReason.STOP)


def test_logprobs_spell_the_text(replica: Replica) -> None:
    outcome = replica.answer(chat("Count: one two"), num_logprobs=3)
    told = [e for e in outcome.events if isinstance(e, Tokens)]
    spelled = "".join(lp.chosen.bytes_latin1 for event in told for lp in event.logprobs)
    assert spelled.encode("latin-1").decode() == outcome.text


def test_one_seed_gives_one_text(replica: Replica) -> None:
    sampling = SamplingParams(temperature=1.5, seed=42)
    texts = {replica.answer(chat("Hi"), sampling=sampling).text for _ in range(3)}
    assert len(texts) == 1


def test_the_memory_of_unused_cells_is_not_taken(replica: Replica) -> None:
    stats = replica.loaded.runner.stats()
    assert 0 < stats.kv_cells_used < stats.kv_cells_total == 4 * 1024


def test_a_cancelled_job_frees_its_slot(replica: Replica) -> None:
    job_id = replica.submit(chat("Write a long story."), max_tokens=900, ignore_eos=True)
    replica.inbox.wait_for_event(job_id)
    replica.loaded.runner.cancel(job_id)
    done = replica.inbox.wait_for_end(job_id).done
    assert isinstance(done, Done)
    assert done.finish_reason is FinishReason.CANCELLED
    assert all(not slot.job for slot in replica.loaded.runner.slots())


def test_a_score_tells_what_generation_told(replica: Replica) -> None:
    prompt = chat("Name three colours.")
    said = replica.answer(prompt, max_tokens=12, num_logprobs=2)
    answered = [one.chosen.logprob for one in said.logprobs]
    start = replica.loaded.model.tokenize(prompt, add_special=True, parse_special=True)
    tokens = (*start, *said.token_ids)
    score = replica.answer("", prompt_tokens=tokens, max_tokens=0, num_prompt_logprobs=2)
    told = [event for event in score.events if isinstance(event, PromptLogprobs)]
    judged = [one for event in told for one in event.logprobs]
    assert [one.chosen.id for one in judged] == list(tokens)
    scored = [one.chosen.logprob for one in judged[-len(answered) :]]
    assert scored == pytest.approx(answered, abs=0.05)
