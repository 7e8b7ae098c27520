"""What the server keeps of idempotency keys: one maker at a time, and not more than is allowed."""

import pytest

from inference.relay.answers import AnswerBounds, AnswerRelay, AnswerState, Claim
from inference.relay.connect import SyncRedis
from inference.relay.gateway import GatewayRelay

BOUNDS = AnswerBounds(seconds=100, max_answers=3, max_bytes=100)


@pytest.fixture
def answers(gateway: GatewayRelay) -> AnswerRelay:
    return AnswerRelay(gateway)


def claim_of(holder: str, name: str = "n", fingerprint: str = "f", owner: str = "key:1") -> Claim:
    return Claim(owner=owner, name=name, fingerprint=fingerprint, holder=holder)


async def state_of(answers: AnswerRelay, claim: Claim, lost_run: str = "") -> AnswerState:
    return (await answers.claim(claim, lost_run)).state


async def test_one_claims_and_others_get_what_it_kept(answers: AnswerRelay) -> None:
    maker, other = claim_of("a"), claim_of("b")
    assert await state_of(answers, maker) is AnswerState.YOURS
    assert await state_of(answers, maker) is AnswerState.YOURS
    assert await state_of(answers, other) is AnswerState.CLAIMED
    assert await state_of(answers, claim_of("c", fingerprint="g")) is AnswerState.OTHER
    assert await state_of(answers, claim_of("c", owner="key:2")) is AnswerState.YOURS
    assert await answers.keep(maker, b"\x00answer\xff", BOUNDS)
    found = await answers.claim(other)
    assert (found.state, found.value) == (AnswerState.KEPT, b"\x00answer\xff")
    assert (await answers.claim(maker)).state is AnswerState.KEPT


async def test_what_is_given_up_is_free(answers: AnswerRelay) -> None:
    assert await state_of(answers, claim_of("a")) is AnswerState.YOURS
    await answers.give_up(claim_of("b"))
    assert await state_of(answers, claim_of("b")) is AnswerState.CLAIMED
    await answers.give_up(claim_of("a"))
    assert await state_of(answers, claim_of("b", fingerprint="g")) is AnswerState.YOURS


async def test_a_claim_ends_with_its_holder(answers: AnswerRelay, client: SyncRedis) -> None:
    await answers.claim(claim_of("a"))
    assert 0 < client.ttl("lm:answer:key:1:n") <= 10
    client.expire("lm:answer:key:1:n", 0)
    assert await state_of(answers, claim_of("b")) is AnswerState.YOURS
    assert not await answers.keep(claim_of("a"), b"late", BOUNDS)
    assert await state_of(answers, claim_of("c")) is AnswerState.CLAIMED


async def test_a_run_that_is_lost_is_made_again(answers: AnswerRelay) -> None:
    await answers.claim(claim_of("a"))
    assert await answers.point_to(claim_of("a"), "run_1", BOUNDS)
    found = await answers.claim(claim_of("b"))
    assert (found.state, found.value) == (AnswerState.TOLD, b"run_1")
    assert await state_of(answers, claim_of("b"), "run_0") is AnswerState.TOLD
    assert await state_of(answers, claim_of("b"), "run_1") is AnswerState.YOURS
    assert await state_of(answers, claim_of("c"), "run_1") is AnswerState.CLAIMED


@pytest.mark.parametrize(("size", "num_left"), [(1, 3), (40, 2), (100, 1)])
async def test_the_oldest_make_room(
    answers: AnswerRelay, client: SyncRedis, size: int, num_left: int
) -> None:
    for number in range(5):
        claim = claim_of("a", name=f"n{number}")
        await answers.claim(claim)
        await answers.keep(claim, b"x" * size, BOUNDS)
    states = [await state_of(answers, claim_of("b", name=f"n{number}")) for number in range(5)]
    assert states == [AnswerState.YOURS] * (5 - num_left) + [AnswerState.KEPT] * num_left
    assert client.zcard("lm:answers:key:1") == num_left
    assert 90 < client.ttl("lm:answers:key:1") <= 100
