"""A text ends before the first line that is not indented enough."""

import pytest

from inference.text.indent_rule import IndentRule


def cut(text: str, min_indent: int, size: int) -> str:
    rule = IndentRule(min_indent)
    told = "".join(rule.push(text[at : at + size]) for at in range(0, len(text), size))
    return told + rule.flush()


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("text", "min_indent", "expected"),
    [
        ("x\n  a\n    b\n c", 2, "x\n  a\n    b\n "),
        ("x\ny", 1, "x\n"),
        ("x\n\n  y", 2, "x\n"),
        ("x\n\t\ty", 2, "x\n\t\ty"),
        ("no indent at first", 4, "no indent at first"),
        ("x\n  ", 4, "x\n  "),
    ],
)
def test_the_text_ends_with_the_blanks_of_the_line(
    text: str, min_indent: int, expected: str, size: int
) -> None:
    assert cut(text, min_indent, size) == expected


def test_blanks_wait_only_until_they_are_enough() -> None:
    rule = IndentRule(2)
    assert [rule.push(piece) for piece in ("\n", " ", " ", " ", "a")] == ["\n", "", "  ", " ", "a"]
    assert not rule.is_broken
    assert rule.push("\nb") == "\n"
    assert rule.is_broken
    assert rule.push("  more") == ""
