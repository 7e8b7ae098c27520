"""Streams a response as events with sequence numbers, and makes its document on the way."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason, TokenLogprob, Tokens
from llamero.api.collect import timings_object
from llamero.api.errors import from_failed
from llamero.api.numbering import no_such_event
from llamero.api.openai.extras import ChoiceExtras, StreamExtras
from llamero.api.responses.document import Document, error_of, usage_of
from llamero.api.responses.output import OpenItem, Output, OutputEvent
from llamero.api.run import ChoiceEvent
from llamero.api.turn import Text, TurnFormat
from llamero.errors import InvalidValue, LlameroError

encode_json = msgspec.json.Encoder().encode
# What ends a reader's connection and not the response.
PASSING = frozenset(
    {ErrorCode.STREAM_DETACHED, ErrorCode.BROKER_UNAVAILABLE, ErrorCode.TOKEN_EXPIRED}
)


class ResponseRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """All that a response needs to be told, now or by another gateway.

    ``draft`` is its document before anything is generated. ``extras`` are told as llama-server
    does: progress by events of their own, the pace in those that bring something.
    """

    draft: Document
    turn: TurnFormat
    extras: StreamExtras | None = None

    def make_writer(self, after: int = -1) -> "ResponseWriter":
        """Begin to tell it to a client that has the events up to ``after``."""
        return ResponseWriter(self, after)


class KeptResponse(msgspec.Struct, frozen=True, tag="response"):
    """A stream of a response that is stored nowhere, as it is kept for who repeats its request."""

    recipe: ResponseRecipe


class ResponseWriter:
    """Writes events. Those that a client has are written too, and dropped: numbers stay the same.

    ``final`` is the document as it was stored; without it the one made here is what counts.
    """

    def __init__(self, recipe: ResponseRecipe, after: int = -1) -> None:
        self.final: Document | None = None
        self._recipe = recipe
        self._after = after
        self._number = -1
        self._output = Output(recipe.draft["id"])
        self._reader = recipe.turn.reader(0)
        self._extras = ChoiceExtras(recipe.extras, 0) if recipe.extras is not None else None
        self._held_logprobs: list[TokenLogprob] = []
        self._has_begun = False
        self._done: Done | None = None

    def start(self) -> bytes:
        """Say that there is a response, and that it waits if nobody waits for it."""
        draft = self._recipe.draft
        if not draft["background"]:
            return self._tell("created", {"response": draft})
        queued = {"response": draft | {"status": "queued"}}
        return self._tell("created", queued) + self._tell("queued", queued)

    def write(self, event: ChoiceEvent) -> bytes:
        """Write what an event brings, if anything; the first one says that work has begun."""
        content = event.event
        chunks = b"" if self._has_begun else self._begin()
        if self._extras is not None and (told := self._extras.note(content)) is not None:
            chunks += self._tell("in_progress", {"response": self._recipe.draft} | told)
        if type(content) is Tokens:
            return chunks + self._write_tokens(content)
        if type(content) is Done:
            self._done = content
            is_cut = content.finish_reason in (FinishReason.LENGTH, FinishReason.CANCELLED)
            chunks += self._close(is_cut=is_cut)
        return chunks

    def end(self) -> bytes:
        """Tell the response as it ended. Raises InvalidValue if there is no event ``after``."""
        document = self.final or self.conclude()
        word = document["status"]
        # There is no event of its own for one that was cancelled.
        told = {"response": document} | self._last_timings()
        chunks = self._tell("failed" if word == "cancelled" else word, told)
        if self._number < self._after:
            raise no_such_event("starting_after")
        return chunks

    def fail(self, error: LlameroError) -> bytes:
        """Tell that it failed, or, by an error event, that this telling of it did."""
        if error.code in PASSING or isinstance(error, InvalidValue):
            return error_event(error, self._number + 1)
        chunks = b"" if self._has_begun else self._begin()
        chunks += self._close(is_cut=True)
        document = self.final or self.conclude(error)
        return chunks + self._tell("failed", {"response": document})

    def conclude(self, error: LlameroError | None = None) -> Document:
        """Make the document of a response that has ended, well or by ``error``."""
        done = self._done
        ending: dict[str, Any] = {"output": self._output.items}
        if done is not None:
            ending["usage"] = usage_of(done)
        if error is not None and error.code != ErrorCode.REQUEST_CANCELLED:
            ending |= {"status": "failed", "error": error_of(error)}
        elif done is None or done.finish_reason is FinishReason.CANCELLED:
            ending["status"] = "cancelled"
        elif done.finish_reason is FinishReason.LENGTH:
            ending |= {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            }
        else:
            ending |= {"status": "completed", "completed_at": int(time.time())}
        return self._recipe.draft | ending

    def _begin(self) -> bytes:
        self._has_begun = True
        return self._tell("in_progress", {"response": self._recipe.draft})

    def _write_tokens(self, content: Tokens) -> bytes:
        pieces = self._reader.feed(content.text)
        self._held_logprobs += content.logprobs
        extra = self._extras.beside(content) if self._extras is not None else {}
        if not pieces:
            return b""
        if not extra and not self._held_logprobs and len(pieces) == 1 and type(pieces[0]) is Text:
            message = self._output.open_text
            if message is not None:
                return self._tell_text(message, pieces[0].text)
        logprobs, self._held_logprobs = self._held_logprobs, []
        return self._tell_all(self._output.take(pieces, logprobs), extra)

    def _tell_text(self, message: OpenItem, text: str) -> bytes:
        """Tell more text: what happens for each token, so it is built from bytes."""
        message.texts.append(text)
        self._number += 1
        if self._number <= self._after:
            return b""
        return (
            b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta",'
            b'"item_id":"%b","output_index":%d,"content_index":0,"delta":%b,"logprobs":[],'
            b'"sequence_number":%d}\n\n'
        ) % (message.id_bytes, message.index, encode_json(text), self._number)

    def _close(self, *, is_cut: bool) -> bytes:
        rest = self._output.take(self._reader.finish(), self._held_logprobs)
        return self._tell_all(rest) + self._tell_all(self._output.finish(is_cut=is_cut))

    def _tell_all(
        self, events: Iterable[OutputEvent], extra: dict[str, Any] | None = None
    ) -> bytes:
        """Tell events, with what is told beside them in the last one."""
        told = list(events)
        if told and extra:
            told[-1] = (told[-1][0], told[-1][1] | extra)
        return b"".join(self._tell(name, fields) for name, fields in told)

    def _last_timings(self) -> dict[str, Any]:
        extras = self._recipe.extras
        if self._done is None or extras is None or not extras.tells_timings:
            return {}
        return {"timings": timings_object(self._done)}

    def _tell(self, name: str, fields: dict[str, Any]) -> bytes:
        self._number += 1
        if self._number <= self._after:
            return b""
        kind = f"response.{name}"
        document = {"type": kind, **fields, "sequence_number": self._number}
        # No ``id:``: after one, OpenAI's client takes each comment for an event without data.
        return f"event: {kind}\ndata: ".encode() + encode_json(document) + b"\n\n"


def judge(recipe: ResponseRecipe, events: Sequence[Event]) -> Document:
    """Give the document of a response whose job has told all its events."""
    writer = recipe.make_writer()
    writer.start()
    for event in events:
        if type(event) is Failed:
            writer.fail(from_failed(event))
            return writer.conclude(from_failed(event))
        writer.write(ChoiceEvent(0, event))
    return writer.conclude()


def error_event(error: LlameroError, number: int = 0) -> bytes:
    """Give the event that tells what went wrong with a stream."""
    document = {
        "type": "error",
        "code": error.code,
        "message": error.message,
        "param": error.param,
        "sequence_number": number,
    }
    return b"event: error\ndata: " + encode_json(document) + b"\n\n"
