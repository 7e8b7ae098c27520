"""Reads calls of tools in one syntax, as their text comes."""

import json
from collections.abc import Callable, Mapping

import msgspec

from inference.text.tool_grammar import (
    CallSyntax,
    JsonCall,
    NamedCall,
    ParameterCall,
    PythonCall,
)
from llamero.api.turn.char_feed import CharFeed, NotACall, Waiting
from llamero.api.turn.json_text import read_string, read_value
from llamero.api.turn.marks import Marks
from llamero.api.turn.pieces import CallArguments, CallStarted, Piece
from llamero.api.turn.python_text import read_python_value

_NAME_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_MOST_AFTER_NAME = 64
"""Characters that may stand between a name and its arguments, such as an id of the model's own."""
_MOST_KEY = 1024
# What may stand before a call's name. Other objects are words, and told as they come.
_OTHER_KEYS = ("type", "id", "tool_call_id")


class CallableTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as far as reading its calls needs it.

    ``texts`` names the arguments that are written without quotes where each is written by itself;
    those in ``nullable_texts`` may also be null.
    """

    name: str
    texts: tuple[str, ...] = ()
    nullable_texts: tuple[str, ...] = ()


class CallTeller:
    """Tells the calls of a turn as pieces; it outlives the sections in which they stand."""

    def __init__(self, make_id: Callable[[int], str]) -> None:
        self.num_started = 0
        self.num_ended = 0
        self.pieces: list[Piece] = []
        self._make_id = make_id
        self._arguments: list[str] = []

    def start(self, name: str) -> None:
        """Tell that a call begins."""
        index = self.num_started
        self.num_started += 1
        self.pieces.append(CallStarted(index, self._make_id(index), name))

    def add(self, text: str) -> None:
        """Tell more of the arguments of the latest call."""
        if text:
            self._arguments.append(text)

    def end(self) -> None:
        """Note that the call is whole."""
        self._flush()
        self.num_ended += 1

    def take(self) -> list[Piece]:
        """Give what is to be told by now."""
        self._flush()
        pieces, self.pieces = self.pieces, []
        return pieces

    def _flush(self) -> None:
        if self._arguments:
            text = "".join(self._arguments)
            self.pieces.append(CallArguments(self.num_started - 1, text))
            self._arguments.clear()


class CallSection:
    """Calls that follow each other, from the first mark to what ends them.

    ``unread`` is the text that was taken for calls and is none, once ``is_done``.
    """

    def __init__(
        self,
        syntax: CallSyntax,
        tools: Mapping[str, CallableTool],
        teller: CallTeller,
        *,
        must_call: bool,
    ) -> None:
        self.is_done = False
        self.unread = ""
        self._syntax, self._tools, self._teller = syntax, tools, teller
        self._must_call = must_call
        self._num_before = teller.num_started
        self._feed = CharFeed()
        self._raw: list[str] = []
        self._held = ""
        self._parser = self._parse()

    def feed(self, text: str) -> None:
        """Take the next text."""
        self._feed.put(text)
        if self._is_untold:
            self._raw.append(text)
        try:
            next(self._parser)
        except StopIteration:
            self._finish(self._feed.rest())
        except NotACall:
            self._finish("".join(self._raw) if self._is_untold else self._feed.rest())

    def finish(self) -> None:
        """The text has ended within the calls: tell what there was of the latest.

        The beginning of a call without a name is none, and no words for the user either.
        """
        if not self._is_untold:
            self._teller.add(self._held)
        elif not self._is_certain:
            self._finish("".join(self._raw))

    @property
    def _is_certain(self) -> bool:
        """Whether the beginning of a call cannot be anything else."""
        syntax = self._syntax
        if self._must_call or syntax.trigger:
            return True
        key = syntax.form.name_key if isinstance(syntax.form, JsonCall) else ""
        return "".join("".join(self._raw).split()).startswith(f'{{"{key}"')

    @property
    def has_calls(self) -> bool:
        """Whether a call was read."""
        return not self._is_untold

    @property
    def _is_untold(self) -> bool:
        return self._teller.num_started == self._num_before

    def _finish(self, unread: str) -> None:
        self.is_done, self.unread = True, unread

    def _parse(self) -> Waiting[None]:
        syntax, form = self._syntax, self._syntax.form
        first = syntax.before + ("{" if isinstance(form, JsonCall) else form.before_name)
        yield from self._feed.expect(syntax.begin + first)
        while True:
            if isinstance(form, JsonCall):
                yield from self._json_call(form)
            elif isinstance(form, NamedCall):
                yield from self._named_call(form)
            elif isinstance(form, PythonCall):
                yield from self._python_call()
            else:
                yield from self._parameter_call(form)
            if not syntax.end.strip():
                return
            after = yield from self._feed.expect(syntax.between + first, syntax.end)
            if after == syntax.end:
                return

    def _json_call(self, form: JsonCall) -> Waiting[None]:
        """Read an object with name and arguments, in any order, from behind its brace."""
        has_arguments, is_named = False, False
        early: list[str] = []
        while (char := (yield from self._feed.skip_blanks())) != "}":
            if char == ",":
                yield from self._feed.take()
                continue
            key = yield from read_string(self._feed)
            if not is_named and key not in (form.name_key, form.arguments_key, *_OTHER_KEYS):
                raise NotACall
            yield from self._feed.expect(":")
            if key == form.name_key and not is_named:
                self._start((yield from read_string(self._feed)))
                self._teller.add("".join(early))
                is_named = True
            elif key == form.arguments_key and not has_arguments:
                yield from self._arguments(self._teller.add if is_named else early.append)
                has_arguments = True
            else:
                yield from read_value(self._feed, lambda _: None)
        yield from self._feed.take()
        if not is_named:
            raise NotACall
        if not has_arguments:
            self._teller.add("{}")
        yield from self._end()

    def _arguments(self, tell: Callable[[str], None]) -> Waiting[None]:
        """Read an object; some models write it as a string, and null where there is nothing."""
        char = yield from self._feed.skip_blanks()
        if char == "{":
            yield from read_value(self._feed, tell)
        elif char == '"':
            tell((yield from read_string(self._feed)) or "{}")
        else:
            parts: list[str] = []
            yield from read_value(self._feed, parts.append)
            tell("{}" if parts == list("null") else "".join(parts))

    def _named_call(self, form: NamedCall) -> Waiting[None]:
        """Read a name, what stands behind it, and an object, from behind what precedes the name."""
        name = yield from self._name()
        if mark := form.before_arguments.strip():
            yield from self._feed.take_until(mark, _MOST_AFTER_NAME + len(mark))
        self._start(name)
        yield from self._arguments(self._teller.add)
        yield from self._end()

    def _python_call(self) -> Waiting[None]:
        """Read a name and arguments in brackets; they are told as one object."""
        name = yield from self._name()
        if (yield from self._feed.peek()) != "(":
            raise NotACall
        yield from self._feed.take()
        self._start(name)
        separator = "{"
        while (char := (yield from self._feed.skip_blanks())) != ")":
            if char == ",":
                yield from self._feed.take()
                continue
            key = (yield from self._feed.take_until("=", _MOST_KEY)).strip()
            self._teller.add(f"{separator}{json.dumps(key, ensure_ascii=False)}: ")
            separator = ", "
            yield from read_python_value(self._feed, self._teller.add)
        yield from self._feed.take()
        self._teller.add("{}" if separator == "{" else "}")
        yield from self._end()

    def _end(self) -> Waiting[None]:
        self._teller.end()
        if self._syntax.after.strip():
            yield from self._feed.expect(self._syntax.after)

    def _name(self) -> Waiting[str]:
        name = ""
        char = yield from self._feed.skip_blanks()
        while char in _NAME_CHARS:
            name += yield from self._feed.take()
            char = yield from self._feed.peek()
        return name

    def _start(self, name: str) -> None:
        if name not in self._tools:
            raise NotACall
        self._raw.clear()
        self._tool = self._tools[name]
        self._teller.start(name)

    def _parameter_call(self, form: ParameterCall) -> Waiting[None]:
        """Read a name and arguments one by one; they are told as one object."""
        name = yield from self._name()
        if form.after_name.strip():
            yield from self._feed.expect(form.after_name)
        self._start(name)
        separator = "{"
        while (
            yield from self._feed.expect(form.before_key, self._syntax.after)
        ) == form.before_key:
            key_end, *others = form.after_key.split()
            key = yield from self._feed.take_until(key_end, _MOST_KEY)
            yield from self._feed.expect("".join(others))
            self._teller.add(f"{separator}{json.dumps(key, ensure_ascii=False)}: ")
            separator = ", "
            if form.after_key.endswith("\n") and (yield from self._feed.peek()) == "\n":
                yield from self._feed.take()
            mark = form.after_value.rstrip()
            if key in self._tool.texts:
                may_be_null = key in self._tool.nullable_texts
                yield from self._text_value(mark, may_be_null=may_be_null)
            else:
                yield from self._json_value(mark)
            self._held = ""
        self._teller.add("{}" if separator == "{" else "}")
        self._teller.end()

    def _text_value(self, mark: str, *, may_be_null: bool) -> Waiting[None]:
        """Read a text up to a mark, and tell it as a JSON string as it comes."""
        pending, null = "", f"null{mark}" if may_be_null else ""
        while null.startswith(pending) and pending != null:
            pending += yield from self._feed.take()
            self._held = f'"{_escape(pending[:4])}'
        if null and pending == null:
            self._teller.add("null")
            return
        self._teller.add('"')
        self._held = ""
        while True:
            while not mark.startswith(pending):
                self._teller.add(_escape(pending[0]))
                pending = pending[1:]
            if pending == mark:
                break
            pending += yield from self._feed.take()
        self._teller.add('"')

    def _json_value(self, mark: str) -> Waiting[None]:
        """Read a value up to a mark, and tell it once it is whole."""
        text, marks = "", Marks((mark,))
        while not text.endswith(mark):
            text += yield from self._feed.take()
            self._held = text[: len(text) - marks.num_held(text)]
        value = text.removesuffix(mark).strip()
        self._teller.add(value if _is_json(value) else json.dumps(value, ensure_ascii=False))


def _escape(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
