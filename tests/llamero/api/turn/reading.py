"""Reads whole texts as turns, however they are cut."""

from collections.abc import Iterable, Iterator, Sequence

from llamero.api.turn import CallArguments, CallStarted, Piece, Reasoning, Text, TurnFormat
from llamero.api.turn.calls import CallableTool
from llamero.api.turn.reasoning_styles import find_reasoning_style

TOOLS = (
    CallableTool(name="get_weather", texts=("city", "note"), nullable_texts=("note",)),
    CallableTool(name="now"),
)
THINK = find_reasoning_style("<think></think>")
HARMONY = find_reasoning_style("<|channel|><|message|>")


def read(turn: TurnFormat, parts: Iterable[str]) -> list[Piece]:
    """Give the pieces of a text that comes in parts, those that follow each other joined."""
    reader = turn.reader(0)
    pieces: list[Piece] = []
    for part in parts:
        pieces += reader.feed(part)
    return join([*pieces, *reader.finish()])


def join(pieces: Sequence[Piece]) -> list[Piece]:
    """Join pieces of the same kind that follow each other."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        match piece, last:
            case Text(), Text():
                joined[-1] = Text(last.text + piece.text)
            case Reasoning(), Reasoning():
                joined[-1] = Reasoning(last.text + piece.text)
            case CallArguments(), CallArguments():
                joined[-1] = CallArguments(piece.index, last.text + piece.text)
            case _:
                joined.append(piece)
    return joined


def cuts(text: str) -> Iterator[list[str]]:
    """Give the text whole, cut once at every place, and character by character."""
    yield [text]
    yield from ([text[:at], text[at:]] for at in range(1, len(text)))
    yield list(text)


def calls_of(pieces: Iterable[Piece]) -> list[tuple[str, str]]:
    """Give the name and the arguments of each call."""
    calls: list[tuple[str, str]] = []
    for piece in pieces:
        if isinstance(piece, CallStarted):
            calls.append((piece.name, ""))
        elif isinstance(piece, CallArguments):
            name, arguments = calls[piece.index]
            calls[piece.index] = (name, arguments + piece.text)
    return calls


def words_of(pieces: Iterable[Piece]) -> str:
    """Give the words for the user."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def thoughts_of(pieces: Iterable[Piece]) -> str:
    """Give the reasoning."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Reasoning))
