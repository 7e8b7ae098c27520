"""Hostile grammars never reach the native parser."""

import pytest

from inference.backend.grammar import MAX_REPEAT, check_grammar
from inference.protocol.errors import EngineError, ErrorCode


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "hello"',
        'root ::= "(((" [(] # ((((\n',
        'root ::= "a\\"(" [\\]{}(] "b"',
        'root ::= item{2,5} ws # all\nitem ::= "x" | "y"\nws ::= | " " ws\n\n',
        'root ::= (\n "a" |\n b\n)* .\nb ::= [a-z\\x20-\\u00e9]+ | <[12]> !<|end|>',
        f'root ::= "a"{{0,{MAX_REPEAT}}}',
        "root ::= " + "(" * 60 + '"a"' + ")" * 60,
        'root ::=\n  "a"',
    ],
)
def test_ordinary_grammars_pass(grammar: str) -> None:
    check_grammar(grammar)


@pytest.mark.parametrize(
    "grammar",
    [
        "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000,
        "root ::= " + "(" * 70 + '"a"' + ")" * 70,
        'root ::= "a"{99999999}',
        'root ::= "a"{2001}',
        'root ::= "a"{-1}',
        'root ::= "a"{1,2,3}',
        'root ::= "a"{',
        "root ::= " + '"a"{2000} ' * 21,
        'root ::= "never closed',
        "root ::= [never closed",
        'root ::= "a")',
        'root ::= "\0"',
        'root ::= ""*',
        'root ::= "a" | *',
        'root ::= "\\q"',
        "root = 'a'",
        "a ::= b",
        "root ::= missing",
        'root ::= "a" ::= "b"',
        'root ::= "a"\n | "b"',
        "root ::= (",
        "".join(f'r{i} ::= "a"\n' for i in range(2001)),
        "root ::= ",
        'root ::= a\na ::=  \nb ::= "x"',
    ],
)
def test_hostile_and_broken_grammars_are_refused(grammar: str) -> None:
    with pytest.raises(EngineError) as caught:
        check_grammar(grammar)
    assert caught.value.code is ErrorCode.INVALID_GRAMMAR


def test_a_refusal_names_the_position() -> None:
    with pytest.raises(EngineError, match="position 12"):
        check_grammar('root ::= "a"{5000}')
