"""A whole message: the events of a run put together."""

from typing import Any

from inference.protocol.events import Done, Failed, Tokens
from llamero.api.anthropic.content import make_blocks
from llamero.api.anthropic.shape import MessageShape
from llamero.api.errors import from_failed
from llamero.api.run import GenerationRun
from llamero.api.turn import Piece, Text, TurnReader


async def collect_message(run: GenerationRun, shape: MessageShape) -> dict[str, Any]:
    """Read a run to its end and close it; raises LlameroError if it failed."""
    reader = None if shape.turn.is_plain else shape.turn.reader(0)
    pieces: list[Piece] = []
    message: dict[str, Any] = {}
    try:
        async for _, event in run:
            match event:
                case Tokens() if reader is not None:
                    pieces += reader.feed(event.text)
                case Tokens() if event.text:
                    pieces.append(Text(event.text))
                case Done():
                    pieces += [] if reader is None else reader.finish()
                    message = _complete(shape, pieces, event, reader)
                case Failed():
                    raise from_failed(event)
    finally:
        await run.close()
    return message


def _complete(
    shape: MessageShape, pieces: list[Piece], done: Done, reader: TurnReader | None
) -> dict[str, Any]:
    blocks = make_blocks(pieces, hides_thinking=shape.hides_thinking)
    message = shape.envelope(blocks, shape.describe_usage(done))
    return message | shape.describe_end(done, reader)
