"""A whole message: the events of a run put together."""

from typing import Any

from inference.protocol.events import Done, Failed, Tokens
from llamero.api.anthropic.content import make_blocks
from llamero.api.anthropic.shape import MessageShape
from llamero.api.errors import from_failed
from llamero.api.run import GenerationRun
from llamero.api.turn import Piece


async def collect_message(run: GenerationRun, shape: MessageShape) -> dict[str, Any]:
    """Read a run to its end and close it; raises LlameroError if it failed."""
    reader = shape.turn.reader(0)
    pieces: list[Piece] = []
    message: dict[str, Any] = {}
    try:
        async for _, event in run:
            match event:
                case Tokens():
                    pieces += reader.feed(event.text, len(event.token_ids))
                case Done():
                    pieces += reader.finish()
                    blocks = make_blocks(pieces, hides_thinking=shape.hides_thinking)
                    message = shape.envelope(blocks)
                    message |= shape.describe_end(event, has_calls=reader.has_calls)
                    message["usage"] = shape.describe_usage(
                        event.num_cached_tokens, event.num_completion_tokens
                    )
                case Failed():
                    raise from_failed(event)
    finally:
        await run.close()
    return message
