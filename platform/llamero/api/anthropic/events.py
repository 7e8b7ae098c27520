"""A message as server-sent events, named and ordered as Anthropic's are."""

from typing import Any

import msgspec

from inference.protocol.events import Done, Started, Tokens
from llamero.api.anthropic.content import Signature, open_tool_use
from llamero.api.anthropic.errors import anthropic_error
from llamero.api.anthropic.shape import MessageShape
from llamero.api.run import ChoiceEvent
from llamero.api.turn import CallArguments, CallStarted, Piece, Reasoning, Text
from llamero.errors import LlameroError

_encode = msgspec.json.Encoder().encode


def named_event(document: dict[str, Any]) -> bytes:
    """Give an event that is named by its type."""
    return b"event: %b\ndata: %b\n\n" % (document["type"].encode(), _encode(document))


def error_event(error: LlameroError) -> bytes:
    """Give the event that ends a stream badly."""
    return named_event(anthropic_error(error))


class MessageEvents:
    """Writes a run as one message; measured per token, so deltas are built from bytes.

    The message begins when its job does, since its first event tells what was cached.
    """

    def __init__(self, shape: MessageShape) -> None:
        self._shape = shape
        self._reader = None if shape.turn.is_plain else shape.turn.reader(0)
        self._has_begun = False
        self._num_blocks = 0
        self._open_kind = ""
        self._delta = b""
        self._signature = Signature()

    def start(self) -> bytes:
        """Give nothing yet."""
        return b""

    def write(self, event: ChoiceEvent) -> bytes:
        """Write what an event tells."""
        content = event.event
        if type(content) is Tokens:
            if self._reader is None:
                return self._write_text(content.text) if content.text else b""
            return self._write_pieces(self._reader.feed(content.text))
        if type(content) is Started:
            return self._begin(content.num_cached_tokens)
        if type(content) is Done:
            return self._begin(content.num_cached_tokens) + self._finish(content)
        return b""

    def end(self) -> bytes:
        """Say that the message is complete."""
        return named_event({"type": "message_stop"})

    def fail(self, error: LlameroError) -> bytes:
        """Give the error."""
        return error_event(error)

    def _begin(self, num_cached: int) -> bytes:
        """Open the message, once; another attempt of its job begins it no second time."""
        if self._has_begun:
            return b""
        self._has_begun = True
        message = self._shape.envelope([], self._shape.describe_prompt(num_cached))
        return named_event({"type": "message_start", "message": message})

    def _finish(self, done: Done) -> bytes:
        reader = self._reader
        rest = b"" if reader is None else self._write_pieces(reader.finish())
        usage = self._shape.describe_usage(done)
        end = self._shape.describe_end(done, reader)
        delta = named_event({"type": "message_delta", "delta": end, "usage": usage})
        return rest + self._close_block() + delta

    def _write_pieces(self, pieces: list[Piece]) -> bytes:
        return b"".join(map(self._write_piece, pieces))

    def _write_piece(self, piece: Piece) -> bytes:
        match piece:
            case Text(text):
                return self._write_text(text)
            case Reasoning(text):
                return self._write_thinking(text)
            case CallStarted():
                return self._open_block(open_tool_use(piece), "input_json_delta", "partial_json")
            case CallArguments(text=text):
                return self._delta + _encode(text) + b"}}\n\n"

    def _write_text(self, text: str) -> bytes:
        head = b""
        if self._open_kind != "text":
            head = self._open_block({"type": "text", "text": ""}, "text_delta", "text")
        return head + self._delta + _encode(text) + b"}}\n\n"

    def _write_thinking(self, text: str) -> bytes:
        head = b""
        if self._open_kind != "thinking":
            block = {"type": "thinking", "thinking": "", "signature": ""}
            head = self._open_block(block, "thinking_delta", "thinking")
            self._signature = Signature()
        self._signature.update(text)
        if self._shape.hides_thinking:
            return head
        return head + self._delta + _encode(text) + b"}}\n\n"

    def _open_block(self, block: dict[str, Any], delta_type: str, field: str) -> bytes:
        """Open a block after the last; a ping follows the first one, as at Anthropic."""
        closed = self._close_block()
        index, self._num_blocks = self._num_blocks, self._num_blocks + 1
        self._open_kind = block["type"]
        self._delta = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,'
            b'"delta":{"type":"%b","%b":' % (index, delta_type.encode(), field.encode())
        )
        opened = named_event(
            {"type": "content_block_start", "index": index, "content_block": block}
        )
        ping = b"" if index else named_event({"type": "ping"})
        return closed + opened + ping

    def _close_block(self) -> bytes:
        if not self._open_kind:
            return b""
        index = self._num_blocks - 1
        seal = b""
        if self._open_kind == "thinking":
            delta = {"type": "signature_delta", "signature": str(self._signature)}
            seal = named_event({"type": "content_block_delta", "index": index, "delta": delta})
        self._open_kind = ""
        return seal + named_event({"type": "content_block_stop", "index": index})
