"""The output of a response as it grows: items, and an event for each thing that happens to them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from inference.protocol.events import TokenLogprob
from llamero.api.openai.logprobs import chat_logprobs
from llamero.api.responses.ids import make_item_id
from llamero.api.responses.items import Item
from llamero.api.turn import CallArguments, CallStarted, Piece, Reasoning, Text

OutputEvent = tuple[str, dict[str, Any]]
"""The type of an event, without ``response.``, and its fields."""


class OpenItem:
    """The item that is being written: what it holds so far, and where events place it."""

    def __init__(self, item: Item, index: int, text_event: str) -> None:
        self.item = item
        self.index = index
        self.id_bytes = item["id"].encode()
        self.place = {"item_id": item["id"], "output_index": index}
        self.delta_event = f"{text_event}.delta"
        self.done_event = f"{text_event}.done"
        self.texts: list[str] = []
        self.logprobs: list[dict[str, Any]] = []

    @property
    def text(self) -> str:
        """All that was written to it."""
        return "".join(self.texts)


class Output:
    """Turns the pieces of a turn into items. One is open at a time; the next one closes it."""

    def __init__(self, response_id: str) -> None:
        self.items: list[Item] = []
        self._response_id = response_id
        self._open: OpenItem | None = None

    @property
    def open_text(self) -> OpenItem | None:
        """The message that more text goes into, where one is open."""
        is_text = self._open is not None and self._open.item["type"] == "message"
        return self._open if is_text else None

    def take(
        self, pieces: Sequence[Piece], logprobs: Sequence[TokenLogprob] = ()
    ) -> Iterator[OutputEvent]:
        """Write the next pieces; ``logprobs`` belong to the first text among them."""
        for piece in pieces:
            match piece:
                case Text(text):
                    yield from self._write_text(text, logprobs)
                    logprobs = ()
                case Reasoning(text):
                    yield from self._write_reasoning(text)
                case CallStarted():
                    yield from self._start_call(piece)
                case CallArguments(_, text):
                    yield from self._extend({"delta": text}, text)

    def finish(self, *, is_cut: bool) -> Iterator[OutputEvent]:
        """Close what is open, as incomplete if it was cut; no items at all are an empty text."""
        if not self.items and not is_cut:
            yield from self._start_message()
        yield from self._close("incomplete" if is_cut else "completed")

    def _write_text(self, text: str, logprobs: Iterable[TokenLogprob]) -> Iterator[OutputEvent]:
        if self._open is None or self._open.item["type"] != "message":
            yield from self._start_message()
        assert self._open is not None
        told = chat_logprobs(logprobs)["content"]
        self._open.logprobs += told
        yield from self._extend({"content_index": 0, "delta": text, "logprobs": told}, text)

    def _write_reasoning(self, text: str) -> Iterator[OutputEvent]:
        if self._open is None or self._open.item["type"] != "reasoning":
            item = {"type": "reasoning", "summary": [], "content": []}
            yield from self._start("rs", item, "reasoning_text")
            yield from self._add_part({"type": "reasoning_text", "text": ""})
        yield from self._extend({"content_index": 0, "delta": text}, text)

    def _start_message(self) -> Iterator[OutputEvent]:
        yield from self._start(
            "msg", {"type": "message", "role": "assistant", "content": []}, "output_text"
        )
        yield from self._add_part(_text_part("", []))

    def _start_call(self, call: CallStarted) -> Iterator[OutputEvent]:
        item = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": ""}
        yield from self._start("fc", item, "function_call_arguments")

    def _start(self, prefix: str, item: Item, text_event: str) -> Iterator[OutputEvent]:
        yield from self._close("completed")
        index = len(self.items)
        item_id = make_item_id(prefix, self._response_id, index, is_output=True)
        item = {"id": item_id, "status": "in_progress", **item}
        self.items.append(item)
        self._open = OpenItem(item, index, text_event)
        yield "output_item.added", {"output_index": index, "item": item}

    def _add_part(self, part: Item) -> Iterator[OutputEvent]:
        assert self._open is not None
        yield "content_part.added", {**self._open.place, "content_index": 0, "part": part}

    def _extend(self, fields: dict[str, Any], text: str) -> Iterator[OutputEvent]:
        if self._open is not None:
            self._open.texts.append(text)
            yield self._open.delta_event, self._open.place | fields

    def _close(self, status: str) -> Iterator[OutputEvent]:
        open_item, self._open = self._open, None
        if open_item is None:
            return
        item, text = {**open_item.item, "status": status}, open_item.text
        self.items[open_item.index] = item
        if item["type"] == "function_call":
            item["arguments"] = text
            fields = {"name": item["name"], "arguments": text}
            yield open_item.done_event, open_item.place | fields
        else:
            place = open_item.place | {"content_index": 0}
            is_text = item["type"] == "message"
            part = _text_part(text, open_item.logprobs) if is_text else _thought(text)
            item["content"] = [part]
            done = {"text": text} | ({"logprobs": open_item.logprobs} if is_text else {})
            yield open_item.done_event, place | done
            yield "content_part.done", place | {"part": part}
        yield "output_item.done", {"output_index": open_item.index, "item": item}


def _text_part(text: str, logprobs: list[dict[str, Any]]) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def _thought(text: str) -> Item:
    return {"type": "reasoning_text", "text": text}
