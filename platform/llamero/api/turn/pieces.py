"""What one turn of a model is made of, in the order in which it was written."""

import msgspec


class Text(msgspec.Struct, frozen=True, array_like=True):
    """Words for the user."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, array_like=True):
    """Words the model wrote to itself before it answered."""

    text: str


class CallStarted(msgspec.Struct, frozen=True, array_like=True):
    """The model calls a tool: the turn's call of this index, counted from 0."""

    index: int
    id: str
    name: str


class CallArguments(msgspec.Struct, frozen=True, array_like=True):
    """More of the JSON text of a call's arguments; all parts joined are one JSON object.

    Of a call that was cut off by a limit the parts are what there was, and no whole JSON.
    """

    index: int
    text: str


Piece = Text | Reasoning | CallStarted | CallArguments
