"""What arrives on a gateway's channel: events of many jobs at once, or one answer about text."""

import msgspec

from inference.protocol.events import Event
from inference.protocol.text import TextReply

EventFrame = tuple[str, int, Event]
_frames = msgspec.json.Decoder(list[EventFrame])
_replies = msgspec.json.Decoder(TextReply)


def decode_message(raw: bytes) -> list[EventFrame] | TextReply:
    """Read one message: (job, seq, event) frames or a reply. Raises msgspec.ValidationError."""
    if raw.startswith(b"["):
        return _frames.decode(raw)
    return _replies.decode(raw)
