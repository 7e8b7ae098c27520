"""Full contexts and full caches of a real model: answers go on, and nobody's is cut short."""

from pathlib import Path

import pytest

from inference.protocol.events import FinishReason
from tests.inference.engine.replica import Replica, chat

pytestmark = pytest.mark.model


def test_an_answer_goes_on_far_beyond_the_context(smollm2_path: Path) -> None:
    replica = Replica(smollm2_path, num_slots=2, context_length=64, is_context_shifting=True)
    beside = replica.submit(chat("Count to ten."), max_tokens=20, ignore_eos=True, salt="other")
    outcome = replica.answer(
        chat("Tell me a story."), max_tokens=90, num_keep=-1, ignore_eos=True, salt="shifting"
    )
    assert len(outcome.token_ids) == outcome.done.num_completion_tokens == 90
    assert (outcome.done.finish_reason, outcome.done.truncated) == (FinishReason.LENGTH, True)
    assert len(set(outcome.token_ids)) > 20
    assert not replica.inbox.wait_for_end(beside).done.truncated
    again = replica.answer(chat("Tell me a story."), max_tokens=4, salt="shifting")
    assert again.token_ids == outcome.token_ids[:4]
    replica.loaded.runner.stop()


def test_answers_that_do_not_fit_together_all_come_to_their_end(smollm2_path: Path) -> None:
    replica = Replica(
        smollm2_path, num_slots=2, context_length=290, is_kv_unified=True, kv_cells=550
    )
    # Without a bound: to the end of the context, and both contexts are more than there is.
    ids = [
        replica.submit(chat(f"Tell me {count} stories."), max_tokens=None, ignore_eos=True)
        for count in range(2)
    ]
    for job_id in ids:
        outcome = replica.inbox.wait_for_end(job_id)
        assert len(outcome.token_ids) == outcome.done.num_completion_tokens
        assert outcome.done.num_prompt_tokens + outcome.done.num_completion_tokens == 290
        assert outcome.done.truncated
    stats = replica.loaded.runner.stats()
    assert stats.num_jobs_preempted >= 1
    assert stats.num_jobs_failed == 0
    assert stats.kv_cells_used <= stats.kv_cells_total == 550
    replica.loaded.runner.stop()
