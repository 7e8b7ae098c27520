"""How answers get into the database: when a window asks, and when nobody does."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from inference.protocol.events import Done, Failed, FinishReason, Started, Tokens, encode_event
from inference.relay.connect import SyncRedis, connect
from inference.relay.keys import events_key, job_key, kept_key
from llamero import dispatch
from llamero.accounts.callers import user_owner
from llamero.api.resuming import KeptRun, SocketRecipe
from llamero.api.turn import TurnFormat
from llamero.api.turn.reasoning_styles import find_reasoning_style
from llamero.playground.models import Message, MessageState
from llamero.playground.settling import settle_answers
from tests.llamero.playground.conftest import Window
from tests.llamero.playground.test_chats import say, start
from tests.llamero.streaming.fakes import FakeDispatcher, FakeStream

STORY = (Started(0, 0), Tokens("Once", (1,)), Tokens(" upon", (2,)))
END = Done(FinishReason.EOS, 7, 3, 2)


def keep(user: User, run: str, turn: TurnFormat | None = None) -> tuple[str, bytes]:
    """Give what is kept of a run of a user: its owner's name and the document."""
    recipe = SocketRecipe("smol", turn or TurnFormat())
    document = msgspec.json.encode(KeptRun(jobs=("job",), model_pk=1, recipe=recipe))
    return user_owner(user.pk), document


@pytest.fixture
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> FakeDispatcher:
    """The data plane."""
    fake = FakeDispatcher()
    monkeypatch.setattr(dispatch, "get_dispatcher", lambda: fake)
    return fake


def tell(fake: FakeDispatcher, user: User, run: str, *events: Any) -> None:
    """Have a run of a user have told so much."""
    owner, document = keep(user, run)
    fake.kept[owner, run] = document
    stream = object.__new__(FakeStream)
    stream.job, stream.told = type("Job", (), {"id": "job"})(), list(events)
    fake.streams = [stream]


def test_a_window_that_was_told_the_end_has_it_written(
    window: Window, dispatcher: FakeDispatcher
) -> None:
    _, answer = say(window, start(window), "Tell me a story.")
    tell(dispatcher, window.user, answer["run"], *STORY)
    early = window.ok("POST", f"messages/{answer['id']}/settle")["message"]
    tell(dispatcher, window.user, answer["run"], *STORY, END)

    settled = window.ok("POST", f"messages/{answer['id']}/settle")["message"]

    assert early["state"] == "running"
    assert (settled["state"], settled["text"]) == ("done", "Once upon")
    assert settled["outcome"]["finish_reason"] == "stop"
    assert settled["outcome"]["usage"]["completion_tokens"] == 2


def test_a_failed_answer_keeps_what_there_was(window: Window, dispatcher: FakeDispatcher) -> None:
    _, answer = say(window, start(window), "Tell me a story.")
    failure = Failed("engine_lost", "The replica was lost.")
    tell(dispatcher, window.user, answer["run"], *STORY, failure)

    settled = window.ok("POST", f"messages/{answer['id']}/settle")["message"]

    assert (settled["state"], settled["text"]) == ("failed", "Once upon")
    assert settled["outcome"]["error"]["code"] == "engine_lost"


def test_a_refusal_is_believed_only_of_a_run_that_never_began(
    window: Window, dispatcher: FakeDispatcher
) -> None:
    chat = start(window)
    refusal = {"refusal": {"code": "context_length_exceeded", "message": "Too long."}}
    _, refused = say(window, chat, "x")
    _, begun = say(window, chat, "y")
    tell(dispatcher, window.user, begun["run"], *STORY)

    gone = window.ok("POST", f"messages/{refused['id']}/settle", refusal)["message"]
    runs = window.ok("POST", f"messages/{begun['id']}/settle", refusal)["message"]

    assert (gone["state"], gone["outcome"]["error"]["message"]) == ("failed", "Too long.")
    assert runs["state"] == "running"
    bad = {"refusal": {"code": 7, "message": ""}}
    assert window.error("POST", f"messages/{begun['id']}/settle", bad)[0] == 400


@pytest.fixture
def redis(valkey_url: str) -> SyncRedis:
    """The broker."""
    return connect(valkey_url)


def note(redis: SyncRedis, user: User, run: str, state: str, *events: Any, **how: Any) -> None:
    """Have the broker know a run so far."""
    owner, document = keep(user, run, **how)
    redis.set(kept_key(owner, run), document, ex=60)
    redis.delete(events_key("job"))
    for event in events:
        redis.xadd(events_key("job"), {"e": encode_event(event)})
    redis.hset(job_key("job"), "state", state)


def make_older(answer: dict[str, Any], minutes: int) -> None:
    """Have an answer have begun earlier."""
    began = timezone.now() - timedelta(minutes=minutes)
    Message.objects.filter(pk=answer["id"]).update(created_at=began)


def test_an_answer_that_nobody_watches_is_written_when_it_ends(
    window: Window, redis: SyncRedis
) -> None:
    _, answer = say(window, start(window), "Tell me a story.")
    make_older(answer, 1)
    row = Message.objects.get(pk=answer["id"])
    note(redis, window.user, answer["run"], "running", *STORY)
    settle_answers(redis)
    row.refresh_from_db()
    assert row.state == MessageState.RUNNING

    note(redis, window.user, answer["run"], "done", *STORY, END)
    settle_answers(redis)

    row.refresh_from_db()
    assert (row.state, row.text) == (MessageState.DONE, "Once upon")


def test_reasoning_is_kept_apart(window: Window, redis: SyncRedis) -> None:
    _, answer = say(window, start(window), "Think.")
    make_older(answer, 1)
    style = find_reasoning_style("<think></think>")
    told = (Tokens("<think>Hm.</think>", (1,)), Tokens("Yes.", (2,)), END)
    note(redis, window.user, answer["run"], "done", *told, turn=TurnFormat(reasoning=style))

    settle_answers(redis)

    row = Message.objects.get(pk=answer["id"])
    assert (row.reasoning.strip(), row.text.strip()) == ("Hm.", "Yes.")


def test_what_the_broker_lost_is_told_so(window: Window, redis: SyncRedis) -> None:
    _, answer = say(window, start(window), "Tell me a story.")
    make_older(answer, 1)
    note(redis, window.user, answer["run"], "running", *STORY)
    redis.delete(job_key("job"))

    settle_answers(redis)

    row = Message.objects.get(pk=answer["id"])
    assert (row.state, row.text) == (MessageState.FAILED, "Once upon")
    assert row.outcome["error"]["code"] == "engine_lost"


def test_an_answer_that_never_began_is_given_up_at_last(window: Window, redis: SyncRedis) -> None:
    _, answer = say(window, start(window), "Tell me a story.")
    row = Message.objects.get(pk=answer["id"])
    for minutes, state in ((10, MessageState.RUNNING), (40, MessageState.FAILED)):
        make_older(answer, minutes)
        settle_answers(redis)
        row.refresh_from_db()
        assert row.state == state
    assert row.outcome["error"]["code"] == "never_begun"
