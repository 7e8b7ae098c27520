"""All that a stream of OpenAI's text APIs needs to be written, now or by another gateway."""

import msgspec

from llamero.api.openai.chunks import ChatDialect, OpenAIChunks, TextDialect
from llamero.api.openai.envelope import Envelope
from llamero.api.openai.extras import StreamExtras
from llamero.api.openai.turns import TurnChunks, TurnShape


class ChatRecipe(msgspec.Struct, frozen=True, kw_only=True, tag="chat"):
    """How the answer to a conversation is streamed."""

    envelope: Envelope
    num_choices: int
    include_usage: bool
    shape: TurnShape
    extras: StreamExtras | None = None

    @property
    def num_jobs(self) -> int:
        """How many jobs it tells of."""
        return self.num_choices

    def make_writer(self) -> OpenAIChunks:
        """Begin to write it; text that needs no reading takes the short way."""
        if not self.shape.turn.is_plain:
            return TurnChunks(
                self.envelope,
                self.shape,
                num_choices=self.num_choices,
                include_usage=self.include_usage,
                extras=self.extras,
            )
        return OpenAIChunks(
            self.envelope,
            ChatDialect(self.shape.opening),
            num_choices=self.num_choices,
            include_usage=self.include_usage,
            extras=self.extras,
            is_native=self.shape.is_native,
        )


class TextRecipe(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    """How the answer to prompts is streamed."""

    envelope: Envelope
    echoes: tuple[str, ...]
    num_prompts: int
    num_choices: int
    num_logprobs: int | None
    include_usage: bool
    extras: StreamExtras | None = None

    @property
    def num_jobs(self) -> int:
        """How many jobs it tells of."""
        return self.num_prompts * self.num_choices

    def make_writer(self) -> OpenAIChunks:
        """Begin to write it."""
        dialect = TextDialect(
            echoes=self.echoes, num_choices=self.num_choices, num_logprobs=self.num_logprobs
        )
        return OpenAIChunks(
            self.envelope,
            dialect,
            num_prompts=self.num_prompts,
            num_choices=self.num_choices,
            include_usage=self.include_usage,
            extras=self.extras,
        )
