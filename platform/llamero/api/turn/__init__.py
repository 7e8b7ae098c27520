"""What the raw text of an answer means: reasoning, words for the user, calls of tools.

The same for every API that chats: each turns the pieces into words of its own.
"""

from llamero.api.turn.pieces import CallArguments, CallStarted, Piece, Reasoning, Text
from llamero.api.turn.reader import TurnReader
from llamero.api.turn.tools import NO_TOOLS, CallMode, Tool, ToolUse
from llamero.api.turn.turn_format import TurnFormat, finish_word
from llamero.api.turn.wishes import AS_THE_MODEL_LIKES, EFFORTS, ReasoningWish

__all__ = [
    "AS_THE_MODEL_LIKES",
    "EFFORTS",
    "NO_TOOLS",
    "CallArguments",
    "CallMode",
    "CallStarted",
    "Piece",
    "Reasoning",
    "ReasoningWish",
    "Text",
    "Tool",
    "ToolUse",
    "TurnFormat",
    "TurnReader",
    "finish_word",
]
