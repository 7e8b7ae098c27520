"""How many tokens of an answer are reasoning, told by the marks around it as the text grows."""

import re

from inference.protocol.jobs import ReasoningMarks

# Of answers in channels (gpt-oss): a header, its mark, a body, and one of the marks that end it.
CHANNEL_BODY = "<|message|>"
MAX_CHANNEL_HEADER = 1024
CHANNEL_ENDS = ("<|end|>", "<|start|>", "<|channel|>", "<|call|>", "<|return|>")
_IS_REASONING = re.compile(r"<\|channel\|>\s*analysis(?!.*to=functions\.)", re.DOTALL)


class ReasoningCounter:
    """Counts tokens between two marks at the beginning of a text, those of the marks included."""

    def __init__(self, marks: ReasoningMarks) -> None:
        self.num_tokens = 0
        self._opening, self._closing = marks.opening, marks.closing
        self._is_open, self._is_over = marks.is_open, False
        self._held = ""
        self._num_undecided = 0

    def feed(self, text: str) -> None:
        """Take a token and the text that is certain with it, none maybe."""
        if self._is_over:
            return
        self._held += text
        self._num_undecided += 1
        if not self._is_open:
            self._read_opening()
        if self._is_open:
            self.num_tokens += self._num_undecided
            self._num_undecided = 0
            self._is_over = self._closing in self._held
            # The mark may come in pieces.
            self._held = self._held[-len(self._closing) :]

    def _read_opening(self) -> None:
        seen = self._held.lstrip()
        if seen.startswith(self._opening):
            self._is_open, self._held = True, seen[len(self._opening) :]
        elif not self._opening.startswith(seen):
            self._is_over = True


class ChannelCounter:
    """Counts the tokens of parts whose header says ``analysis`` (gpt-oss), headers included."""

    def __init__(self) -> None:
        self.num_tokens = 0
        self._is_header, self._is_reasoning = True, False
        self._held = ""
        self._num_undecided = 0

    def feed(self, text: str) -> None:
        """Take a token and the text that is certain with it, none maybe."""
        was_reasoning = self._is_reasoning
        self._held += text
        self._num_undecided += 1
        while self._read_part():
            was_reasoning = was_reasoning or self._is_reasoning
        if was_reasoning or not self._is_header:
            self.num_tokens += self._num_undecided if was_reasoning else 0
            self._num_undecided = 0

    def _read_part(self) -> bool:
        """Read a header or a body to its end; tells whether it was there."""
        if self._is_header:
            header, mark, rest = self._held.partition(CHANNEL_BODY)
            if not mark:
                # No header is so long: words without one are not to be kept.
                self._held = self._held[-MAX_CHANNEL_HEADER:]
                return False
            self._is_header, self._held = False, rest
            self._is_reasoning = _IS_REASONING.search(header) is not None
            return True
        found = [(place, mark) for mark in CHANNEL_ENDS if (place := self._held.find(mark)) >= 0]
        if not found:
            self._held = self._held[-max(map(len, CHANNEL_ENDS)) :]
            return False
        place, mark = min(found)
        # A header may begin with the mark that ends the body before it.
        self._held = self._held[place if mark == "<|channel|>" else place + len(mark) :]
        self._is_header, self._is_reasoning = True, False
        return True


def make_counter(marks: ReasoningMarks) -> ReasoningCounter | ChannelCounter:
    """Begin to count."""
    return ChannelCounter() if marks.has_channels else ReasoningCounter(marks)
