"""Guesses of a small model, here a fake that tells every wrong position."""

from collections.abc import Sequence

import pytest

from inference.backend.base import Slice
from inference.backend.fake import FIRST_BYTE, FakeBackend, FakeModel
from inference.speculation.draft_model import DraftModel
from inference.speculation.drafter import Want


def count_up(sequence: Sequence[int]) -> int:
    """Continue with the next byte."""
    return FIRST_BYTE + (sequence[-1] - FIRST_BYTE + 1) % 256


def make(*, bite: int = 64, context_length: int = 64, num_vocab: int = 258) -> DraftModel:
    backend = FakeBackend(FakeModel(context_length), next_token=count_up)
    return DraftModel(backend, num_vocab=num_vocab, bite=bite)


def fake_of(drafter: DraftModel) -> FakeBackend:
    backend = drafter._backend
    assert isinstance(backend, FakeBackend)
    return backend


def guesses(drafter: DraftModel, wants: list[Want]) -> list[tuple[int, ...]]:
    return [guess.tokens for guess in drafter.draft(wants)]


def test_the_small_model_is_asked_token_by_token() -> None:
    drafter = make()
    drafter.open(0, [5, 6, 7])
    assert guesses(drafter, [Want(0, 3)]) == [(8, 9, 10)]
    assert fake_of(drafter).batches == [((0, 3),), ((0, 1),), ((0, 1),)]


def test_all_slots_guess_in_the_same_batches() -> None:
    drafter = make()
    drafter.open(1, [5, 6])
    drafter.open(3, [50])
    assert guesses(drafter, [Want(1, 3), Want(3, 1)]) == [(7, 8, 9), (51,)]
    assert len(fake_of(drafter).batches) == 3


def test_guesses_that_came_true_are_not_read_again() -> None:
    drafter, tokens = make(), [5, 6, 7]
    drafter.open(0, tokens)
    assert guesses(drafter, [Want(0, 3)]) == [(8, 9, 10)]
    tokens += [8, 9, 10, 11]
    assert guesses(drafter, [Want(0, 1)]) == [(12,)]
    assert fake_of(drafter).batches[-1] == ((0, 2),)


def test_wrong_guesses_are_dropped_from_its_context() -> None:
    drafter, tokens = make(), [5, 6, 7]
    drafter.open(0, tokens)
    guesses(drafter, [Want(0, 3)])
    tokens += [8, 40]
    assert guesses(drafter, [Want(0, 2)]) == [(41, 42)]
    assert fake_of(drafter).sequences[0] == [5, 6, 7, 8, 40, 41]


def test_a_guess_that_nobody_used_is_read_once_more() -> None:
    drafter, tokens = make(), [5, 6, 7]
    drafter.open(0, tokens)
    assert guesses(drafter, [Want(0, 2)]) == guesses(drafter, [Want(0, 2)]) == [(8, 9)]


def test_a_long_prompt_is_read_in_bites_beside_others() -> None:
    drafter = make(bite=4)
    drafter.open(0, [1])
    drafter.open(1, list(range(2, 12)))
    answers = [guesses(drafter, [Want(0, 1), Want(1, 1)]) for _ in range(4)]
    assert answers[:2] == [[(2,), ()], [(2,), ()]]
    assert answers[-1] == [(2,), (12,)]
    assert max(sum(size for _, size in sizes) for sizes in fake_of(drafter).batches) <= 4


def test_what_the_next_sequence_shares_is_not_read_again() -> None:
    drafter = make()
    drafter.open(0, [5, 6, 7, 8, 9])
    guesses(drafter, [Want(0, 1)])
    drafter.close(0)
    drafter.open(0, [5, 6, 7, 30, 31])
    assert guesses(drafter, [Want(0, 1)]) == [(32,)]
    assert fake_of(drafter).batches[-1] == ((0, 2),)


def test_nothing_is_guessed_beyond_its_context() -> None:
    drafter = make(context_length=8)
    drafter.open(0, [1, 2, 3, 4, 5, 6])
    assert guesses(drafter, [Want(0, 3)]) == [()]
    assert guesses(drafter, [Want(0, 2)]) == [(7, 8)]


def test_unlikely_guesses_are_left() -> None:
    drafter = make()
    drafter.open(0, [5])
    assert guesses(drafter, [Want(0, 3, min_likely=0.9999)]) == [()]
    assert guesses(drafter, [Want(0, 3, min_likely=0.5)]) == [(6, 7, 8)]


def test_tokens_that_the_large_model_lacks_are_never_guessed() -> None:
    drafter = make(num_vocab=8)
    drafter.open(0, [5])
    assert guesses(drafter, [Want(0, 5)]) == [(6, 7)]


def test_a_failure_costs_the_guesses_and_starts_the_context_over() -> None:
    drafter = make()
    fails = [True]

    def fails_for(piece: Slice) -> bool:
        return piece.start == 3 and fails[0]

    fake_of(drafter).fails_for = fails_for
    drafter.open(0, [5, 6, 7])
    assert guesses(drafter, [Want(0, 3)]) == [()]
    fails[0] = False
    assert guesses(drafter, [Want(0, 3)]) == [(8, 9, 10)]


def test_a_model_that_keeps_failing_is_left_alone() -> None:
    drafter = make()
    fake_of(drafter).fails_for = lambda _: True
    drafter.open(0, [5, 6, 7])
    for _ in range(5):
        assert guesses(drafter, [Want(0, 3)]) == [()]
    assert len(fake_of(drafter).batches) == 3


def test_the_time_of_a_round_is_learned_without_the_prompts() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    backend = FakeBackend(FakeModel(64), next_token=count_up)
    drafter = DraftModel(backend, num_vocab=258, bite=64, clock=clock)
    drafter.open(0, list(range(2, 30)))
    guesses(drafter, [Want(0, 1)])
    assert drafter.round_seconds == 0
    guesses(drafter, [Want(0, 3)])
    assert drafter.round_seconds == pytest.approx(1.0)
