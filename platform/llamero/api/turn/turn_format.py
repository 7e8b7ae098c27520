"""How the answers to one request are written: what its readers must look for.

Kept with a resumable run, so that any gateway reads its text in the same way again.
"""

import msgspec

from inference.protocol.events import FinishReason
from llamero.api.turn.reader import ReasoningReader, TurnReader

FINISH_WORDS = {
    FinishReason.EOS: "stop",
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.CANCELLED: "stop",
}


class TurnFormat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a model writes its reasoning and its calls in the answers to one request.

    ``reasoning_tags`` are those before and after the reasoning, which ``is_reasoning_open`` at the
    start where the prompt ends with the first of them. ``call_style`` names a row of the table of
    formats; it is empty where nothing can be called. ``id_seed`` makes the ids of calls.
    """

    reasoning_tags: tuple[str, str] | None = None
    is_reasoning_open: bool = False
    call_style: str = ""
    tool_names: tuple[str, ...] = ()
    id_seed: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether answers are text and nothing else, so that no reader is needed."""
        return self.reasoning_tags is None and not self.call_style

    def reader(self, choice: int) -> TurnReader:
        """Begin to read a choice; the same text always gives the same pieces and ids."""
        opening, closing = self.reasoning_tags or ("<think>", "</think>")
        return ReasoningReader(opening, closing, is_open=self.is_reasoning_open)


def finish_word(reason: FinishReason, *, has_calls: bool) -> str:
    """Give OpenAI's word for why a choice ended."""
    word = FINISH_WORDS[reason]
    return "tool_calls" if has_calls and word == "stop" else word
