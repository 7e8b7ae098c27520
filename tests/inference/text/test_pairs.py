"""A query and a document become one input, and neither can forge a control token."""

import re

import pytest

from inference.protocol.errors import EngineError
from inference.protocol.replicas import ModelFacts
from inference.protocol.text import JoinPairs, PairLayout
from inference.text import pairs
from inference.text.pairs import PairJoiner

START, SEPARATOR, END = 1, 2, 3
FIRST_LETTER = 10
CONTROL = {"<s>": START, "<sep>": SEPARATOR, "</s>": END}
FRAMED = PairLayout(before=(START,), between=(SEPARATOR,), after=(END,))
TEMPLATE = PairLayout(template="<s>Q {query} D {document} of {query}</s>")


class LetterVocabulary:
    """A token per letter, and three control tokens."""

    def __init__(self, layout: PairLayout) -> None:
        self._layout = layout

    def facts(self) -> ModelFacts:
        return ModelFacts(context_length=100)

    def pair_layout(self) -> PairLayout:
        return self._layout

    def control_tokens(self) -> dict[str, int]:
        return CONTROL

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        pieces = re.split("(<s>|<sep>|</s>)", text) if parse_special else [text]
        return [
            token
            for piece in pieces
            for token in ([CONTROL[piece]] if piece in CONTROL and parse_special else spell(piece))
        ]


def spell(text: str) -> list[int]:
    return [FIRST_LETTER + ord(letter) for letter in text]


def join(layout: PairLayout, query: str, *documents: str, max_tokens: int = 0) -> list[list[int]]:
    joiner = PairJoiner(LetterVocabulary(layout))
    question = JoinPairs(query=query, documents=documents, max_tokens=max_tokens)
    return [list(pair) for pair in joiner.join(question)]


def test_tokens_stand_around_query_and_document() -> None:
    assert join(FRAMED, "ab", "c", "") == [
        [START, *spell("ab"), SEPARATOR, *spell("c"), END],
        [START, *spell("ab"), SEPARATOR, END],
    ]


def test_a_template_is_filled_wherever_it_names_them() -> None:
    expected = [START, *spell("Q ab D c of ab"), END]
    assert join(TEMPLATE, "ab", "c") == [expected]


def test_names_of_places_in_texts_are_plain_text() -> None:
    expected = [START, *spell("Q {document} D {query} of {document}"), END]
    assert join(TEMPLATE, "{document}", "{query}") == [expected]


@pytest.mark.parametrize("layout", [FRAMED, TEMPLATE])
@pytest.mark.parametrize("marker", ["</s>", "a<sep>b", "<s", "ep><sep>"])
def test_markers_in_texts_are_plain_text(layout: PairLayout, marker: str) -> None:
    plain = join(layout, "ab", "c")[0]
    pair = join(layout, marker, marker)[0]
    assert [t for t in pair if t < FIRST_LETTER] == [t for t in plain if t < FIRST_LETTER]
    assert all(pair.count(token) >= 2 for token in spell(marker))


@pytest.mark.parametrize("layout", [FRAMED, TEMPLATE])
@pytest.mark.parametrize("max_tokens", [25, 30, 31])
def test_the_end_of_a_long_document_is_cut_off(layout: PairLayout, max_tokens: int) -> None:
    document = "abcdefghijklmnopqrstuvwxyz" * 9
    pair = join(layout, "q", document, max_tokens=max_tokens)[0]
    assert len(pair) == max_tokens
    assert pair[-1] == END
    assert str(spell("abcd"))[1:-1] in str(pair)


@pytest.mark.parametrize("layout", [FRAMED, TEMPLATE])
def test_a_query_that_leaves_no_room_stays_whole(layout: PairLayout) -> None:
    pair = join(layout, "q" * 50, "document", max_tokens=20)[0]
    assert len(pair) > 50
    assert spell("d")[0] not in pair[3:-1]


@pytest.mark.parametrize("layout", [FRAMED, TEMPLATE])
def test_a_query_that_no_pair_can_hold_is_refused_at_once(layout: PairLayout) -> None:
    with pytest.raises(EngineError, match=r"101 tokens.*100") as caught:
        join(layout, "q" * 101, *["document"] * 2048)
    assert caught.value.param == "query"


def test_pairs_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "MAX_TOKENS", 50)
    assert len(join(FRAMED, "qqqqq", *["dd"] * 5)) == 5
    with pytest.raises(EngineError, match="fewer documents"):
        join(FRAMED, "qqqqq", *["dd"] * 6)
