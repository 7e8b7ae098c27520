"""What is shown of a replica's log holds no secret and nothing that clients sent."""

import pytest

from inference.node.log_tail import MAX_LINE_CHARS, MAX_LINES, end_of_log, last_complaint


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("connecting to redis://me:hunter2@host:6379/0", "connecting to redis://***@host:6379/0"),
        ("connecting to redis://:hunter2@host:6379/0", "connecting to redis://***@host:6379/0"),
        ("key llm_abcdefgh_0123456789012345678901234567890123456789 used", "key *** used"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("LLAMERO_REDIS_PASSWORD=hunter2", "LLAMERO_REDIS_PASSWORD=***"),
        ("KeyError: 'my private diary'", "KeyError: ***"),
        ("msgspec.ValidationError: my private diary", "msgspec.ValidationError: ***"),
        ("ggml.c:12: GGML_ASSERT(n_dims > 0) failed", "ggml.c:12: GGML_ASSERT(n_dims > 0) failed"),
        ("an escape \x1b[31mred\x00", "an escape  [31mred"),
    ],
)
def test_what_must_not_be_shown_is_not(line: str, shown: str) -> None:
    assert end_of_log([line + "\n"]) == (shown,)


def test_the_end_is_kept_and_cut() -> None:
    shown = end_of_log([*(f"line {n}" for n in range(100)), "", "x" * 1000])

    assert len(shown) == MAX_LINES
    assert shown[-2:] == ("line 99", "x" * MAX_LINE_CHARS)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["ERROR x: bad", "INFO x: ready with 2 slots"], "ERROR x: bad"),
        (["INFO x: loads", "INFO x: ready with 2 slots", ""], ""),
        (["Traceback (most recent call last):", "RuntimeError: no"], "RuntimeError: no"),
        (["WARNING x: slow", *["INFO x: goes on"] * 9], ""),
        ([], ""),
    ],
)
def test_a_harmless_line_is_no_reason(lines: list[str], words: str) -> None:
    assert last_complaint(lines) == words
