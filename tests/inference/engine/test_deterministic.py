"""On a deterministic deployment the text of a request is the same, byte by byte, whatever happens.

The texts of requests that run alone are the measure; every other way to the same text is compared
with them. Some have more than 256 cells, where kernels may change.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.protocol.sampling import SamplingParams
from tests.inference.engine.fakes import Outcome
from tests.inference.engine.replica import GREEDY, Replica, chat

pytestmark = pytest.mark.model
slow = pytest.mark.slow

SEEDED = SamplingParams(temperature=1.0, seed=7, repeat_penalty=1.1, top_k=0, mirostat=2)
SHARED = "You are a careful assistant who answers in whole sentences and never hurries. " * 8
REQUESTS = {
    "short": (chat("Name two animals."), GREEDY, 24),
    "seeded": (chat("Tell me a story about a bear."), SEEDED, 40),
    "middle": (chat(SHARED + "What is a river?"), GREEDY, 48),
    "cousin": (chat(SHARED + "What is a lake, and who swims in it?"), SEEDED, 30),
    "long": (chat(SHARED * 3 + "What did I say?"), GREEDY, 40),
}


class Requests:
    """A replica that is asked the same few things in all kinds of ways."""

    def __init__(self, path: Path) -> None:
        self.replica = Replica(path, num_slots=6, prefill_chunk=64, is_deterministic=True)
        self._num_salts = 0
        self.alone = {name: self.ask(name, self.salt()) for name in REQUESTS}

    def salt(self) -> str:
        """Give a salt that nobody has used: nothing is cached under it."""
        self._num_salts += 1
        return f"salt{self._num_salts}"

    def submit(self, name: str, salt: str, **fields: object) -> str:
        """Start a request."""
        prompt, sampling, max_tokens = REQUESTS[name]
        values = {
            "sampling": sampling,
            "max_tokens": max_tokens,
            "ignore_eos": True,
            "num_logprobs": 1,
        }
        return self.replica.submit(prompt, salt=salt, **values | fields)

    def ask(self, name: str, salt: str, **fields: object) -> Outcome:
        """Run a request to its end."""
        return self.replica.inbox.wait_for_end(self.submit(name, salt, **fields))

    def check(self, name: str, outcome: Outcome) -> None:
        """Compare an answer with that of the request alone."""
        assert outcome.token_ids == self.alone[name].token_ids
        assert outcome.text == self.alone[name].text
        assert outcome.logprobs == self.alone[name].logprobs


@pytest.fixture(scope="module")
def requests(smollm2_path: Path) -> Iterator[Requests]:
    asked = Requests(smollm2_path)
    yield asked
    asked.replica.loaded.runner.stop()


def test_the_same_request_again_gives_the_same_text(requests: Requests) -> None:
    for name in ("short", "seeded"):
        requests.check(name, requests.ask(name, requests.salt()))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=slow) for seed in range(1, 6))])
def test_a_batch_of_any_shape_changes_nothing(requests: Requests, seed: int) -> None:
    """Requests arrive one after another while others run, end, or are cancelled."""
    draw = random.Random(seed)
    names = [draw.choice(list(REQUESTS)) for _ in range(4)]
    started = []
    for name in names:
        started.append((name, requests.submit(name, requests.salt())))
        noise = requests.submit("middle", requests.salt(), max_tokens=60)
        time.sleep(draw.random() / 4)
        requests.replica.loaded.runner.cancel(noise)
    for name, job_id in started:
        requests.check(name, requests.replica.inbox.wait_for_end(job_id))


def test_a_prefix_hit_changes_nothing(requests: Requests) -> None:
    salt = requests.salt()
    hits = []
    for name in ("middle", "cousin", "long", "middle", "cousin"):
        outcome = requests.ask(name, salt)
        requests.check(name, outcome)
        hits.append(outcome.done.num_cached_tokens)
    assert hits[0] == 0
    assert all(hits[1:])
    assert all(hit % 32 == 0 for hit in hits)


def test_prompts_that_come_together_share_a_prefix_and_change_nothing(requests: Requests) -> None:
    salt = requests.salt()
    started = [(name, requests.submit(name, salt)) for name in ("middle", "cousin", "long")]
    outcomes = {name: requests.replica.inbox.wait_for_end(job_id) for name, job_id in started}
    for name, outcome in outcomes.items():
        requests.check(name, outcome)
    assert any(outcome.done.num_cached_tokens for outcome in outcomes.values())


@pytest.mark.parametrize("name", ["seeded", pytest.param("middle", marks=slow)])
@pytest.mark.parametrize("num_told", [1, pytest.param(11, marks=slow), 23])
def test_an_answer_that_is_taken_up_elsewhere_goes_on_the_same(
    requests: Requests, name: str, num_told: int
) -> None:
    whole = requests.alone[name].token_ids
    beside = requests.submit("short", requests.salt())
    rest = requests.ask(name, requests.salt(), emitted_tokens=tuple(whole[:num_told]), attempt=2)
    assert whole[:num_told] + rest.token_ids == whole
    requests.check("short", requests.replica.inbox.wait_for_end(beside))


def test_guessing_is_off_whoever_asks(requests: Requests) -> None:
    outcome = requests.ask("middle", requests.salt(), num_draft_tokens=8)
    requests.check("middle", outcome)
    assert outcome.done.num_drafted_tokens == 0
