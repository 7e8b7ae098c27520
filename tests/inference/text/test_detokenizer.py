"""Bytes become whole characters, as early as they can and never wrongly."""

from hypothesis import given, settings
from hypothesis import strategies as st

from inference.text.detokenizer import Detokenizer


def push_all(pieces: list[bytes]) -> str:
    detokenizer = Detokenizer()
    return "".join(detokenizer.push(piece) for piece in pieces)


def test_a_character_leaves_when_its_last_byte_comes() -> None:
    detokenizer = Detokenizer()
    pieces = [detokenizer.push(bytes([byte])) for byte in "é漢🧑".encode()]
    assert pieces == ["", "é", "", "", "漢", "", "", "", "🧑"]


def test_continuation_bytes_alone_become_replacement_characters_at_once() -> None:
    assert push_all([b"\x80"] * 5) == "\ufffd" * 5


def test_a_lead_byte_is_replaced_once_the_next_cannot_follow_it() -> None:
    assert push_all([b"\xf0"] * 5) == "\ufffd" * 4


def test_text_goes_on_after_a_replacement_character() -> None:
    assert push_all([b"\xff", b"\xf0\x9f", b"then"]) == "\ufffd\ufffdthen"


def test_a_surrogate_in_utf8_is_replaced() -> None:
    assert push_all([b"\xed\xa0", b"\x80", b"."]) == "\ufffd\ufffd\ufffd."


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=5), max_size=12))
def test_any_split_of_any_bytes_gives_the_same_text(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert push_all(pieces) == push_all([whole])
    assert whole.decode("utf-8", "replace").startswith(push_all(pieces))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=24))
def test_at_most_three_bytes_are_held_and_a_longer_input_only_adds_text(data: bytes) -> None:
    detokenizer = Detokenizer()
    text = ""
    for at, byte in enumerate(data):
        text += detokenizer.push(bytes([byte]))
        assert detokenizer.num_held_bytes <= 3
        assert text == push_all([data[: at + 1]])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20), st.integers(1, 4))
def test_valid_text_passes_unchanged(text: str, size: int) -> None:
    data = text.encode()
    assert push_all([data[at : at + size] for at in range(0, len(data), size)]) == text
