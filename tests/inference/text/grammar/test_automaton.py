"""The automaton accepts exactly the texts of its grammar, at a bounded cost."""

import itertools
import random
from collections.abc import Iterator

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar import Automaton, Budget, State, automaton, read_grammar
from inference.text.grammar.nodes import Chars, Choice, Node, Repeat, Rule, Sequence, Text
from inference.text.grammar.utf8 import byte_ranges

PLENTY = 10**9


def open_automaton(text: str) -> Automaton:
    return Automaton(read_grammar(text), lambda _: None)


def walk(grammar: Automaton, text: str | bytes, budget: int = PLENTY) -> State:
    allowance = Budget(budget)
    data = text.encode() if isinstance(text, str) else text
    return grammar.walk(grammar.start(allowance), data, allowance)


def accepts(grammar: Automaton, text: str | bytes) -> bool:
    return walk(grammar, text).is_end


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('root ::= "a" | "bc"', ["a", "bc"], ["", "b", "abc", "aa"]),
        ('root ::= "a"* "b"+ "c"?', ["b", "aabbc"], ["a", "ac", "bcc"]),
        ('root ::= ("ab" | "c"){2,3}', ["abc", "ccc", "ababab"], ["c", "cccc"]),
        ('root ::= "x"{3}', ["xxx"], ["xx", "xxxx"]),
        ('root ::= "x"{2,}', ["xx", "xxxxx"], ["x"]),
        ('root ::= "x"{0,0} "y"', ["y"], ["xy"]),
        ('root ::= ("a"?){3} "b"', ["b", "aab", "aaab"], ["aaaab"]),
        ("root ::= [^a-c\\n]+", ["xé🙂", "d"], ["a", "\n", ""]),
        ("root ::= [é-🙂]", ["é", "🙂", "漢"], ["a", "🙃"]),
        ('root ::= "(" root ")" | ""', ["", "(())"], ["(", "())"]),
        ('root ::= item ("," item)*\nitem ::= [0-9]+', ["1,22,3"], [",", "1,"]),
        ('root ::= "\\x41\\u00e9\\U0001F642\\"\\\\\\n"', ['Aé🙂"\\\n'], ["A"]),
        ("root ::= . .", ["é🙂"], ["a", "abc"]),
    ],
)
def test_what_a_grammar_accepts(grammar: str, good: list[str], bad: list[str]) -> None:
    machine = open_automaton(grammar)
    assert [text for text in good if not accepts(machine, text)] == []
    assert [text for text in bad if accepts(machine, text)] == []


def test_bytes_that_are_no_characters_are_dead() -> None:
    machine = open_automaton("root ::= .*")
    for data in (b"\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"):
        assert walk(machine, data).is_dead, data
    assert not walk(machine, "🙂".encode()[:3]).is_dead
    assert not accepts(machine, "🙂".encode()[:3])


@pytest.mark.parametrize("seed", range(20))
def test_ranges_become_the_bytes_of_exactly_their_characters(seed: int) -> None:
    chooser = random.Random(seed)
    borders = [0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
    low = max(0, chooser.choice(borders) - chooser.randrange(70))
    high = min(0x10FFFF, low + chooser.choice([0, 5, 100, 5000, 2_000_000]))
    spellings = list(byte_ranges(((low, high),)))
    codes = {chooser.randrange(0x110000) for _ in range(2000)} | {low, high, low - 1, high + 1}
    for code in codes | set(borders):
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            continue
        data = chr(code).encode()
        found = sum(
            len(spelling) == len(data)
            and all(
                first <= byte <= last for byte, (first, last) in zip(data, spelling, strict=True)
            )
            for spelling in spellings
        )
        assert found == (low <= code <= high), hex(code)


class Naive:
    """Ends of matches by plain recursion over the tree, as far as texts are short."""

    def __init__(self, rules: dict[str, Node], text: str) -> None:
        self._rules, self._text = rules, text

    def accepts(self) -> bool:
        return len(self._text) in self.ends(Rule("root", 0), 0)

    def ends(self, node: Node, at: int) -> set[int]:
        match node:
            case Text(text):
                return {at + len(text)} if self._text.startswith(text, at) else set()
            case Chars(ranges):
                code = ord(self._text[at]) if at < len(self._text) else -1
                return {at + 1} if any(low <= code <= high for low, high in ranges) else set()
            case Rule(name):
                return self.ends(self._rules[name], at)
            case Choice(options):
                return set().union(*(self.ends(option, at) for option in options))
            case Sequence(parts):
                places = {at}
                for part in parts:
                    places = set().union(*(self.ends(part, place) for place in places))
                return places
            case Repeat(part, least, most):
                return self._repeated(part, least, most, at)
        raise AssertionError(node)

    def _repeated(self, part: Node, least: int, most: int | None, at: int) -> set[int]:
        places, found = {at}, {at} if least == 0 else set()
        for count in range(1, (most if most is not None else least + len(self._text) + 1) + 1):
            places = set().union(*(self.ends(part, place) for place in places))
            if count >= least:
                found |= places
        return found


def made_node(chooser: random.Random, depth: int, name: int) -> str:
    """Write a node; rules are only called after a character, so none is left-recursive."""
    kind = chooser.randrange(8 if depth else 3)
    inner = [made_node(chooser, depth - 1, name) for _ in range(2)] if depth and kind > 2 else []
    match kind:
        case 0:
            return chooser.choice(['"a"', '"b"', '"é"', '"ab"', '""', '"éa"'])
        case 1:
            return chooser.choice(["[ab]", "[^a]", ".", "[b-é]"])
        case 2:
            return f'("{chooser.choice("abé")}" r{chooser.randrange(3)})'
        case 3 | 4:
            return f"({inner[0]} {inner[1]})"
        case 5:
            return f"({inner[0]} | {inner[1]})"
        case 6:
            return f"({inner[0]} {chooser.choice(['[a]', inner[1]])}){chooser.choice('*+?')}"
    low = chooser.randrange(3)
    return f"({inner[0]}){{{low},{low + chooser.randrange(3)}}}"


def made_grammar(chooser: random.Random) -> str:
    return "".join(
        f"{name} ::= {made_node(chooser, 3, number)}\n"
        for number, name in enumerate(("root", "r0", "r1", "r2"))
    )


def short_texts(length: int) -> Iterator[str]:
    for size in range(length + 1):
        yield from map("".join, itertools.product("abé", repeat=size))


@pytest.mark.parametrize("seed", range(60))
def test_a_made_grammar_accepts_what_plain_recursion_does(seed: int) -> None:
    text = made_grammar(random.Random(seed)).replace('("")', '("" "")')
    try:
        rules = read_grammar(text)
    except EngineError as error:
        assert "nothing to repeat" in error.message or "left-recursive" in error.message
        return
    machine = Automaton(rules, lambda _: None)
    good = {text for text in short_texts(5) if Naive(rules, text).accepts()}
    assert {text for text in short_texts(5) if accepts(machine, text)} == good
    alive = {text for text in short_texts(5) if not walk(machine, text).is_dead}
    assert {text[:end] for text in good for end in range(len(text) + 1)} <= alive


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('root ::= "a" root "b" | "a" root "c" | ""', "a" * 40),
        ('root ::= ("a" | "a" root | root2)+\nroot2 ::= "a" root "b" | "a" root "c"', "a" * 40),
        ("root ::= " + "(" * 20 + '"a"?' + "){0,9}" * 20, "a" * 60),
        (
            'root ::= "x" (' + " | ".join(f'[a-z]{{{i},1999}} "{i}"' for i in range(1100)) + ")",
            "x" + "a" * 60,
        ),
        (
            "".join(f'r{i} ::= r{i + 1} "x" | r{i + 1} "y"\n' for i in range(30))
            + 'r30 ::= "z"\nroot ::= r0',
            "zx",
        ),
    ],
)
def test_a_grammar_that_explodes_is_refused_at_its_bound(grammar: str, text: str) -> None:
    machine = open_automaton(grammar)
    with pytest.raises(EngineError) as caught:
        walk(machine, text, 50_000)
    assert caught.value.code is ErrorCode.INVALID_GRAMMAR


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('root ::= (("a"{2000}){2000}){2000}', "a" * 3000),
        ('root ::= [a-z]{0,2000} "."', "abc" * 500 + "."),
        ('root ::= "(" root ")" root | "x" root | ""', "(x(x)())x" * 40),
        ('root ::= "a" root | ""', "a" * 5000),
    ],
)
def test_long_texts_of_plain_grammars_cost_a_few_steps_a_byte(grammar: str, text: str) -> None:
    assert not walk(open_automaton(grammar), text, 40 * len(text)).is_dead


def test_nesting_ends_at_a_depth() -> None:
    machine = open_automaton('root ::= "(" root ")" | ""')
    deep = automaton.MAX_STACK
    assert accepts(machine, "(" * deep + ")" * deep)
    assert walk(machine, "(" * (deep + 1)).is_dead


def test_states_that_were_forgotten_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "MAX_STATES", 5)
    machine = open_automaton('root ::= ("a" | "bc"){0,50} "." root | ""')
    text = "abca.bcbc.aaaaaa." * 5
    assert accepts(machine, text)
    assert accepts(machine, text)
    assert walk(machine, "a" * 51).is_dead
