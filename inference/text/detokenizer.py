"""Which whole characters do the bytes of the tokens so far spell?"""

import codecs


class Detokenizer:
    """Turn the bytes of one token after another into whole characters.

    Bytes that can never become a character leave as U+FFFD at once; the beginning of one is
    held, at most three bytes, and dropped with the detokenizer when the sequence ends.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    @property
    def num_held_bytes(self) -> int:
        """How many bytes wait for the rest of their character."""
        return len(self._held)

    def push(self, data: bytes) -> str:
        """Take the next bytes and give the characters they complete."""
        if self._held:
            data = self._held + data
        text, num_used = codecs.utf_8_decode(data, "replace", False)
        self._held = data[num_used:]
        return text
