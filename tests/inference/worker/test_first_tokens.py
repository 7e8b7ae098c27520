"""How long jobs took to their first token: of late, and of most of them."""

from inference.worker.first_tokens import WINDOW_SECONDS, FirstTokens


def test_nine_of_ten_did_not_exceed_it() -> None:
    times = FirstTokens(lambda: 0.0)
    assert times.typical() == 0.0
    for seconds in range(1, 11):
        times.note(float(seconds))
    assert times.typical() == 9.0


def test_what_is_past_does_not_count() -> None:
    now = 0.0
    times = FirstTokens(lambda: now)
    times.note(99.0)
    now = WINDOW_SECONDS + 1
    assert times.typical() == 0.0
    times.note(2.0)
    assert times.typical() == 2.0
    times.note(1.00049)
    assert times.latest() == (2.0, 1.0)
