"""Questions about text: answered without a slot, and never fatal."""

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest

from inference.backend.fake import FIRST_BYTE, NUM_VOCAB, FakeModel
from inference.protocol.errors import ErrorCode
from inference.protocol.text import (
    Detokenize,
    Detokenized,
    Refused,
    RenderChat,
    TextAnswer,
    TextReply,
    TextRequest,
    Tokenize,
    Tokenized,
)
from inference.relay.gateway import GatewayRelay
from inference.text.render_pool import RenderPool
from inference.worker import text_lane
from inference.worker.text_lane import TextAnswers, TextThreads
from tests.inference.relay.fakes import Ear
from tests.inference.worker.conftest import StartReplica
from tests.inference.worker.replicas import Client
from tests.processes import PATIENCE_SECONDS, wait_until


@pytest.fixture
def answers() -> Iterator[TextAnswers]:
    pool = RenderPool()
    yield TextAnswers(FakeModel(), pool)
    pool.close()


def test_tokenizes_with_pieces(answers: TextAnswers) -> None:
    answer = answers.answer(Tokenize(texts=("é", ""), with_pieces=True))
    assert answer == Tokenized(
        tokens=((FIRST_BYTE + 0xC3, FIRST_BYTE + 0xA9), ()), pieces=(("\xc3", "\xa9"), ())
    )


def test_broken_characters_are_replaced(answers: TextAnswers) -> None:
    assert answers.answer(Detokenize(tokens=(FIRST_BYTE + 0xC3,))) == Detokenized(text="\ufffd")


@pytest.mark.parametrize("token", [-1, NUM_VOCAB, 2**40])
def test_unknown_ids_are_refused_by_position(answers: TextAnswers, token: int) -> None:
    answer = answers.answer(Detokenize(tokens=(5, token)))
    assert isinstance(answer, Refused)
    assert (answer.code, answer.param) == (ErrorCode.INVALID_TOKEN_ID, "tokens[1]")


def test_too_long_texts_are_refused(answers: TextAnswers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lane, "MAX_TEXT_BYTES", 10)
    answer = answers.answer(Tokenize(texts=("é" * 6,)))
    assert isinstance(answer, Refused)
    assert answer.code == ErrorCode.INVALID_PROMPT


def test_too_long_messages_are_refused(
    answers: TextAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lane, "MAX_TEXT_BYTES", 10)
    parts = [{"type": "text", "text": "a" * 6}, {"type": "text", "text": "b" * 6}]
    answer = answers.answer(RenderChat(messages=({"role": "user", "content": parts},)))
    assert isinstance(answer, Refused)
    assert answer.code == ErrorCode.INVALID_PROMPT


class SlowAnswers:
    """Answers that wait until they are let go."""

    def __init__(self) -> None:
        self.is_let_go = threading.Event()
        self.begun: queue.Queue[str] = queue.Queue()

    def answer(self, question: Tokenize) -> Tokenized:
        self.begun.put(question.texts[0][:1])
        if len(question.texts[0]) > 1:
            assert self.is_let_go.wait(PATIENCE_SECONDS)
        return Tokenized(tokens=((1,),))


class ListedLane:
    """A lane of questions made beforehand."""

    def __init__(self, texts: list[str]) -> None:
        self.requests: queue.Queue[TextRequest] = queue.Queue()
        self.replies: queue.Queue[tuple[str, TextAnswer]] = queue.Queue()
        self.given_back: list[str] = []
        for number, text in enumerate(texts):
            question = Tokenize(texts=(text,))
            request = TextRequest(
                id=f"{number}", gateway="gw", deadline=time.time() + 60, question=question
            )
            self.requests.put(request)

    def take(self, timeout: float) -> TextRequest | None:
        try:
            return self.requests.get(timeout=0.05)
        except queue.Empty:
            return None

    def reply(self, request: TextRequest, answer: TextAnswer) -> None:
        self.replies.put((request.id, answer))

    def call_back(self, num_threads: int) -> None:
        """Nobody waits long here."""

    def give_back(self, request: TextRequest) -> None:
        self.given_back.append(request.id)


def test_long_questions_never_hold_up_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lane, "LONG_TEXT_CHARS", 10)
    monkeypatch.setattr(text_lane, "LONG_WAIT_SECONDS", 0.05)
    num_long = 1 + text_lane.MAX_LONG_WAITING
    lane = ListedLane(["L" * 20] * (num_long + 3) + ["s"] * 4)
    answers = SlowAnswers()
    threads = TextThreads(lane, answers)  # type: ignore[arg-type]
    threads.start()
    try:
        told: list[TextAnswer] = []
        while sum(isinstance(answer, Tokenized) for answer in told) < 4:
            told.append(lane.replies.get(timeout=PATIENCE_SECONDS)[1])
        answers.is_let_go.set()
        while len(told) < num_long + 3 + 4:
            told.append(lane.replies.get(timeout=PATIENCE_SECONDS)[1])
        refused = [answer for answer in told if isinstance(answer, Refused)]
        assert 3 <= len(refused) <= 4
        assert {answer.code for answer in refused} == {ErrorCode.QUEUE_FULL}
    finally:
        answers.is_let_go.set()
        threads.stop()


def test_who_ends_answers_what_it_has_begun_and_leaves_the_rest_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_lane, "LONG_TEXT_CHARS", 10)
    lane, answers = ListedLane(["L" * 20, "M" * 20, "N" * 20]), SlowAnswers()
    threads = TextThreads(lane, answers)  # type: ignore[arg-type]
    threads.start()
    begun = answers.begun.get(timeout=PATIENCE_SECONDS)
    wait_until(lane.requests.empty, what="the questions to be taken")
    threads.stop()
    threading.Timer(0.05, answers.is_let_go.set).start()
    threads.join(PATIENCE_SECONDS)
    told = [lane.replies.get_nowait()[0] for _ in range(lane.replies.qsize())]
    assert begun in "LMN"
    assert len(told) == 1
    assert sorted(told + lane.given_back) == ["0", "1", "2"]


def test_a_model_without_template_refuses_chat() -> None:
    model = FakeModel()
    facts = msgspec.structs.replace(model.facts(), chat_template="", has_chat_template=False)
    model.facts = lambda: facts  # type: ignore[method-assign]
    question = RenderChat(messages=({"role": "user", "content": "hi"},))
    with closing(RenderPool()) as pool:
        answer = TextAnswers(model, pool).answer(question)
    assert isinstance(answer, Refused)
    assert answer.code == ErrorCode.CHAT_TEMPLATE_ERROR


def test_an_unexpected_failure_is_refused_without_details(
    monkeypatch: pytest.MonkeyPatch, answers: TextAnswers
) -> None:
    monkeypatch.setattr(FakeModel, "detokenize", lambda *_: 1 / 0)
    answer = answers.answer(Detokenize(tokens=(5,)))
    assert answer == Refused(code=ErrorCode.INTERNAL_ERROR, message="An internal error occurred.")


async def test_a_replica_answers_over_the_gateways_channel(
    start_replica: StartReplica, client: Client
) -> None:
    start_replica()
    client.wait_for_status()
    ear = Ear(client.redis)
    request = TextRequest(
        id="q1", gateway="gw", deadline=time.time() + 600, question=Tokenize(texts=("a",))
    )
    gateway: GatewayRelay = client.gateway
    await gateway.ask("chat", request)
    assert ear.hear() == TextReply(id="q1", answer=Tokenized(tokens=((FIRST_BYTE + 97,),)))
