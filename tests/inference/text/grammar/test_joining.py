"""Grammars that become parts of one keep their own rules."""

from inference.text.grammar.joining import join_grammars
from tests.inference.text.json_schema.grammar_walk import accepts


def test_rules_of_the_same_name_are_told_apart_whatever_ends_lines() -> None:
    for end in ("\n", "\r", "\r\n"):
        text = f'root ::= "a" item # root ::= "no"{end}item ::= [#"]{end}'
        other = f'item ::= "<b>"{end}root ::= item "root"{end}'
        joined = join_grammars("one | two", {"one": text, "two": other})
        assert all(accepts(joined, found) for found in ("a#", 'a"', "<b>root"))
        assert not accepts(joined, "a<b>")
