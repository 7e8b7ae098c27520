"""Sound grammars are read; broken and hostile ones are refused at their position."""

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar import read_grammar
from inference.text.grammar.syntax import MAX_REPEAT


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
    read_grammar(grammar)


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
        'root ::= root "a"',
        'root ::= "a" | b? root\nb ::= "b"',
        'root ::= a\na ::= (b | "x")\nb ::= a? "y"',
        'root ::= ("" | " "*) (root | "a")',
        'root ::= "b"\na ::= a',
        'root ::= "a"{3,2}',
        "root ::= [z-a]",
        "root ::= [\\uD800-\\uDFFF]",
        "root ::= [\\U00110000]",
        'root ::= "a\\uD800"',
        'root ::= "a\\U00110000"',
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
        read_grammar(grammar)
    assert caught.value.code is ErrorCode.INVALID_GRAMMAR


def test_a_refusal_names_the_position() -> None:
    with pytest.raises(EngineError, match="position 12"):
        read_grammar('root ::= "a"{5000}')
