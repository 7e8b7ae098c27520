"""How the answers to one request are written: what its readers must look for.

Kept with a resumable run, so that any gateway reads its text in the same way again.
"""

from hashlib import blake2b

import msgspec

from inference.protocol.events import FinishReason
from inference.protocol.jobs import ReasoningMarks
from llamero.api.turn.call_styles import STYLE_OF_NAME
from llamero.api.turn.calls import CallableTool, CallTeller
from llamero.api.turn.harmony import HarmonyReader
from llamero.api.turn.reader import MarkReader, TurnReader
from llamero.api.turn.reasoning_reader import ReasoningReader
from llamero.api.turn.reasoning_styles import ReasoningStyle

FINISH_WORDS = {
    FinishReason.EOS: "stop",
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.CANCELLED: "stop",
}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class TurnFormat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a model writes its reasoning and its calls in the answers to one request.

    ``is_reasoning_open``: the prompt ends with the mark before the reasoning. Reasoning that is not
    ``is_reasoning_apart`` is told as words. ``call_style`` names a row of the table of styles; it
    is empty where nothing can be called. ``must_call``: there will be nothing but calls behind the
    reasoning. ``id_seed`` makes the ids of calls.
    """

    reasoning: ReasoningStyle | None = None
    is_reasoning_open: bool = False
    is_reasoning_apart: bool = True
    call_style: str = ""
    tools: tuple[CallableTool, ...] = ()
    must_call: bool = False
    id_seed: str = ""

    @property
    def reasoning_marks(self) -> ReasoningMarks | None:
        """What an engine must know to count the tokens of reasoning."""
        style = self.reasoning
        if style is None:
            return None
        return ReasoningMarks(
            opening=style.opening,
            closing=style.closing,
            is_open=self.is_reasoning_open,
            has_channels=style.has_channels,
        )

    @property
    def is_plain(self) -> bool:
        """Whether answers are words and nothing else, so that no reader is needed."""
        return self.reasoning is None and not self.call_style

    def reader(self, choice: int) -> TurnReader:
        """Begin to read a choice; the same text always gives the same pieces and ids."""
        style = STYLE_OF_NAME.get(self.call_style)
        id_length = style.id_length if style else 0
        teller = CallTeller(lambda call: self._call_id(choice, call, id_length))
        tools = {tool.name: tool for tool in self.tools}
        reasoning, is_apart = self.reasoning, self.is_reasoning_apart
        if reasoning and reasoning.has_channels:
            return HarmonyReader(teller, tools, is_apart=is_apart)
        reasoner = None
        if reasoning:
            reasoner = ReasoningReader(
                reasoning.opening,
                reasoning.closing,
                is_open=self.is_reasoning_open,
                is_apart=is_apart,
            )
        dropped = reasoning.dropped if reasoning else ()
        syntax = style.syntax if style else None
        return MarkReader(teller, reasoner, syntax, tools, dropped, must_call=self.must_call)

    def _call_id(self, choice: int, call: int, length: int) -> str:
        """Give the id of a call: ``call_`` and more, or as many digits and letters as must be."""
        name = f"{self.id_seed}:{choice}:{call}".encode()
        digest = blake2b(name, digest_size=12)
        if not length:
            return f"call_{digest.hexdigest()}"
        number = int.from_bytes(digest.digest(), "big")
        return "".join(
            _DIGITS[number // len(_DIGITS) ** place % len(_DIGITS)] for place in range(length)
        )


def finish_word(reason: FinishReason, reader: TurnReader | None = None) -> str:
    """Give OpenAI's word for why a choice ended; calls that were cut off are none."""
    word = FINISH_WORDS[reason]
    if reader is None or reason not in (FinishReason.EOS, FinishReason.STOP):
        return word
    return "tool_calls" if reader.has_calls and reader.is_whole else word
