"""Threads that answer questions about text: they need the vocabulary, but no slot."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from inference.backend.base import Model
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.text import (
    Detokenize,
    Detokenized,
    JoinPairs,
    Refused,
    RenderChat,
    TextAnswer,
    TextQuestion,
    TextRequest,
    Tokenize,
    Tokenized,
)
from inference.relay.connect import RedisError
from inference.relay.text_lane import TextLane
from inference.text.chat_template import ChatTemplate
from inference.text.pairs import PairJoiner
from inference.text.render_pool import RenderPool

logger = logging.getLogger(__name__)
NUM_THREADS = 2
STACK_BYTES = 64 << 20  # llama.cpp splits text with regular expressions that recurse
WAIT_SECONDS = 4.0
LONG_WAIT_SECONDS = 0.5
RETRY_SECONDS = 0.5
# A megabyte that is meant to be slow takes the tokenizer two or three seconds.
MAX_TEXT_BYTES = 2 << 20
# Longer questions have a thread of their own, and wait for each other alone.
LONG_TEXT_CHARS = 128 << 10
MAX_LONG_WAITING = 8


class TextAnswers:
    """Answers about one model. Safe to use from many threads."""

    def __init__(self, model: Model, pool: RenderPool) -> None:
        self._model = model
        self._num_vocab = model.facts().num_vocab
        self._template = ChatTemplate(model, pool)
        self._pairs = PairJoiner(model)

    def answer(self, question: TextQuestion) -> TextAnswer:
        """Answer or refuse; never raises."""
        try:
            if isinstance(question, Tokenize):
                return self._tokenize(question)
            if isinstance(question, Detokenize):
                return self._detokenize(question)
            if isinstance(question, JoinPairs):
                return self._join_pairs(question)
            return self._render(question)
        except EngineError as error:
            return Refused(code=error.code, message=error.message, param=error.param)
        except Exception:  # one bad question must not end the thread that answers all
            logger.exception("a question about text could not be answered")
            return Refused(code=ErrorCode.INTERNAL_ERROR, message="An internal error occurred.")

    def _tokenize(self, question: Tokenize) -> Tokenized:
        _check_sizes(question.texts)
        ids = tuple(
            tuple(
                self._model.tokenize(
                    text,
                    add_special=question.add_special,
                    parse_special=question.parse_special,
                )
            )
            for text in question.texts
        )
        if not question.with_pieces:
            return Tokenized(tokens=ids)
        return Tokenized(tokens=ids, pieces=tuple(tuple(map(self._piece, row)) for row in ids))

    def _piece(self, token: int) -> str:
        return self._model.token_bytes(token).decode("latin-1")

    def _join_pairs(self, question: JoinPairs) -> Tokenized:
        _check_sizes((question.query, *question.documents))
        return Tokenized(tokens=self._pairs.join(question))

    def _detokenize(self, question: Detokenize) -> Detokenized:
        for index, token in enumerate(question.tokens):
            if not 0 <= token < self._num_vocab:
                raise EngineError(
                    ErrorCode.INVALID_TOKEN_ID,
                    f"Token {token} is outside the vocabulary of {self._num_vocab} tokens.",
                    param=f"tokens[{index}]",
                )
        return Detokenized(text=self._model.detokenize(question.tokens).decode("utf-8", "replace"))

    def _render(self, question: RenderChat) -> TextAnswer:
        if count_chars(question.messages) > MAX_TEXT_BYTES:
            raise EngineError(
                ErrorCode.INVALID_PROMPT,
                "The messages are too long to tokenize.",
                param="messages",
            )
        return self._template.render(question)


def _check_sizes(texts: Iterable[str]) -> None:
    for text in texts:
        if len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
            raise EngineError(ErrorCode.INVALID_PROMPT, "The text is too long to tokenize.")


def count_chars(value: Any) -> int:
    """Count the characters of all strings in a question, or in a part of one."""
    count, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            count += len(part)
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
        elif isinstance(part, msgspec.Struct):
            waiting += msgspec.structs.astuple(part)
    return count


class TextThreads:
    """Takes questions from the deployment's lane until stopped.

    One thread answers long questions, so that however slow these are, short ones go on.
    """

    def __init__(self, lane: TextLane, answers: TextAnswers) -> None:
        self._lane = lane
        self._answers = answers
        self._long: queue.Queue[TextRequest] = queue.Queue(MAX_LONG_WAITING)
        self._threads: list[threading.Thread] = []
        self._is_stopping = False

    def start(self) -> None:
        """Start the threads, with stacks deep enough for the tokenizer."""
        before = threading.stack_size(STACK_BYTES)
        try:
            for number in range(NUM_THREADS):
                self._start_thread(self._take_and_answer, f"text-{number}")
            self._start_thread(self._answer_long, "text-long")
        finally:
            threading.stack_size(before)

    def stop(self) -> None:
        """Take no further question; what was taken is answered, or left to other replicas."""
        self._is_stopping = True
        try:
            self._lane.call_back(NUM_THREADS)
        except (RedisError, OSError) as error:
            logger.warning("threads come back by themselves: %s", error)
        self._give_back()

    def join(self, seconds: float) -> None:
        """Wait until all that was taken is answered, but no longer than that."""
        ends = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()))
        self._give_back()

    def _give_back(self) -> None:
        """Leave the long questions that nobody has begun to other replicas."""
        try:
            while True:
                self._lane.give_back(self._long.get_nowait())
        except queue.Empty:
            return
        except (RedisError, OSError) as error:
            logger.warning("who asked about text will ask again: %s", error)

    def _start_thread(self, act: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=self._run, args=(act,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run(self, act: Callable[[], None]) -> None:
        while not self._is_stopping:
            self._retry(act)

    def _take_and_answer(self) -> None:
        request = self._lane.take(WAIT_SECONDS)
        if request is None:
            return
        if count_chars(request.question) <= LONG_TEXT_CHARS:
            self._lane.reply(request, self._answers.answer(request.question))
            return
        try:
            self._long.put_nowait(request)
        except queue.Full:
            busy = "Too many long texts wait to be tokenized."
            self._lane.reply(request, Refused(code=ErrorCode.QUEUE_FULL, message=busy))

    def _answer_long(self) -> None:
        try:
            request = self._long.get(timeout=LONG_WAIT_SECONDS)
        except queue.Empty:
            return
        if request.deadline > time.time():
            self._lane.reply(request, self._answers.answer(request.question))

    def _retry(self, act: Callable[[], None]) -> None:
        try:
            act()
        except (RedisError, OSError) as error:
            logger.debug("the text lane is out of reach: %s", error)
            time.sleep(RETRY_SECONDS)
