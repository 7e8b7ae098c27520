"""Chats: whose they are, how they grow, and that nothing in them is lost."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from llamero.errors import LlameroError
from llamero.playground import services
from llamero.playground.answers import Answer
from llamero.playground.models import Chat, Message, MessageState
from llamero.playground.tasks import tidy_chats_task
from tests.llamero.playground.conftest import Window
from tests.models_registry.factories import make_deployment, make_model, make_version

REQUEST = {"model": "smol", "temperature": 0.5, "system": "Be secret."}


def start(window: Window) -> str:
    """Begin a chat."""
    return str(window.ok("POST", "chats")["id"])


def say(window: Window, chat: str, text: str | None, parent: int | None = None) -> Any:
    """Add a question, or ask once more, and give what was added."""
    turn = {"text": text, "parent": parent, "request": REQUEST}
    return window.ok("POST", f"chats/{chat}/turns", turn)["messages"]


def end(message: dict[str, Any], text: str = "Yes.", **fields: Any) -> None:
    """Have an answer end."""
    row = Message.objects.get(pk=message["id"])
    assert services.end_answer(message=row, answer=Answer(text=text, **fields))


def test_a_chat_keeps_questions_answers_and_how_they_were_asked(window: Window) -> None:
    chat = start(window)
    question, answer = say(window, chat, "Do llamas spit?")
    end(answer, "Rarely.\0", outcome={"finish_reason": "stop"})

    kept = window.ok("GET", f"chats/{chat}")

    assert kept["title"] == "Do llamas spit?"
    assert [(one["role"], one["text"]) for one in kept["messages"]] == [
        ("user", "Do llamas spit?"),
        ("assistant", "Rarely.\N{REPLACEMENT CHARACTER}"),
    ]
    assert kept["messages"][1]["request"] == REQUEST
    assert (question["parent"], answer["parent"]) == (None, question["id"])
    assert answer["run"].startswith("run_")


def test_chats_go_all_at_once_and_by_themselves_when_their_time_is_over(
    window: Window, other: Window, settings: Settings
) -> None:
    first, _, kept = start(window), start(window), start(other)
    say(window, first, "One?")
    window.ok("DELETE", "chats")
    assert list(Chat.objects.values_list("pk", flat=True)) == [kept]

    old = start(window)
    Chat.objects.filter(pk=old).update(changed_at=timezone.now() - timedelta(days=8))
    tidy_chats_task()
    assert Chat.objects.count() == 2
    settings.CHAT_RETENTION_DAYS = 7
    tidy_chats_task()
    assert list(Chat.objects.values_list("pk", flat=True)) == [kept]
    assert "7 days after its last change" in window.client.get("/playground").text


def test_an_edited_question_and_another_answer_are_branches(window: Window) -> None:
    chat = start(window)
    question, answer = say(window, chat, "One?")
    end(answer)
    [again] = say(window, chat, None, question["id"])
    edited, _ = say(window, chat, "Two?")

    parents = dict(Message.objects.values_list("pk", "parent"))

    assert parents[again["id"]] == parents[answer["id"]] == question["id"]
    assert parents[edited["id"]] is None
    assert Message.objects.get(pk=answer["id"]).text == "Yes."


def test_two_windows_of_a_chat_lose_nothing_of_each_other(window: Window) -> None:
    chat = start(window)
    _, answer = say(window, chat, "One?")
    end(answer)
    before = window.ok("GET", f"chats/{chat}")["revision"]
    mine = say(window, chat, "Mine?", answer["id"])
    theirs = say(window, chat, "Theirs?", answer["id"])

    kept = window.ok("GET", f"chats/{chat}")

    assert {one["id"] for one in kept["messages"]} >= {one["id"] for one in [*mine, *theirs]}
    assert kept["revision"] > before


def test_calls_of_tools_are_answered_each_and_in_order(window: Window) -> None:
    chat = start(window)
    _, answer = say(window, chat, "Weather?")
    calls = [{"id": f"call_{n}", "name": "look", "arguments": "{}"} for n in (1, 2)]
    end(answer, "", calls=calls)
    results = [{"id": "call_1", "text": "sun"}, {"id": "call_2", "text": "rain"}]
    turn = {"parent": answer["id"], "request": REQUEST}

    added = window.ok("POST", f"chats/{chat}/turns", {**turn, "results": results})["messages"]

    assert [one["role"] for one in added] == ["tool", "tool", "assistant"]
    assert [one["parent"] for one in added] == [answer["id"], added[0]["id"], added[1]["id"]]
    wrong = {**turn, "results": results[:1]}
    assert window.error("POST", f"chats/{chat}/turns", wrong) == (400, "results")


def test_chats_are_found_by_title_and_by_what_was_said(window: Window) -> None:
    chats = [start(window) for _ in range(3)]
    window.ok("PATCH", f"chats/{chats[0]}", {"title": "Alpacas"})
    say(window, chats[1], "About ALPACAS, please.")
    say(window, chats[2], "Vicuñas?")

    found = window.ok("GET", "chats?search=alpacas")["chats"]

    assert {one["id"] for one in found} == set(chats[:2])
    assert window.ok("GET", "chats?search=%00%25")["chats"] == []


def test_a_long_list_comes_in_pages(window: Window) -> None:
    Chat.objects.bulk_create(Chat(user=window.user, title=str(n)) for n in range(60))
    first = window.ok("GET", "chats")

    rest = window.ok("GET", f"chats?before={first['chats'][-1]['id']}")

    assert (len(first["chats"]), first["has_more"]) == (50, True)
    assert (len(rest["chats"]), rest["has_more"]) == (10, False)
    assert not {one["id"] for one in first["chats"]} & {one["id"] for one in rest["chats"]}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "chats/{chat}"),
        ("PATCH", "chats/{chat}"),
        ("DELETE", "chats/{chat}"),
        ("POST", "chats/{chat}/turns"),
        ("POST", "messages/{message}/settle"),
    ],
)
def test_nobody_reaches_the_chats_of_others(
    window: Window, other: Window, method: str, path: str
) -> None:
    chat = start(window)
    question, answer = say(window, chat, "Mine?")
    where = path.format(chat=chat, message=answer["id"])

    body = {"title": "Theirs", "shared": True, "text": "x", "request": {}}
    assert other.error(method, where, body)[0] == 404

    kept = window.ok("GET", f"chats/{chat}")
    assert (kept["title"], kept["shared_at"], len(kept["messages"])) == ("Mine?", None, 2)
    assert other.ok("GET", "chats")["chats"] == []
    own = start(other)
    turn = {"text": "x", "parent": question["id"], "request": {}}
    assert other.error("POST", f"chats/{own}/turns", turn) == (400, "parent")
    assert other.error("PATCH", f"chats/{own}", {"leaves": [answer["id"]]}) == (400, "leaves")


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (b"{", "invalid_json"),
        ({"request": []}, "request"),
        ({"text": "x"}, "request"),
        ({"request": {}}, "parent"),
        ({"request": {}, "text": " "}, "text"),
        ({"request": {}, "text": 7}, "text"),
        ({"request": {}, "text": "x" * 200_001}, "text"),
        ({"request": {}, "text": "x", "parent": "1"}, "parent"),
        ({"request": {}, "text": "x", "parent": 10**30}, "parent"),
        ({"request": {}, "text": "x", "parent": 4711}, "parent"),
        ({"request": {}, "results": "x"}, "results"),
        ({"request": {}, "results": [{"id": 1, "text": "x"}]}, "results"),
        ({"request": {}, "results": [{"id": "call_1", "text": "x"}]}, "results"),
        ({"request": {"x": "y" * 200_000}, "text": "x"}, "request"),
    ],
)
def test_a_bad_turn_is_refused_and_adds_nothing(window: Window, turn: Any, told: str) -> None:
    chat = start(window)

    assert window.error("POST", f"chats/{chat}/turns", turn) == (400, told)

    assert not Message.objects.exists()


def test_nothing_is_said_to_an_answer_that_is_not_whole(window: Window) -> None:
    chat = start(window)
    _, answer = say(window, chat, "One?")

    turn = {"text": "Two?", "parent": answer["id"], "request": REQUEST}
    assert window.error("POST", f"chats/{chat}/turns", turn) == (409, "still_running")


def test_columns_side_by_side_come_back_as_they_were_asked(window: Window) -> None:
    chat = start(window)

    def ask(column: int, columns: int) -> Any:
        turn = {"text": "One?", "parent": None, "request": REQUEST}
        path = f"chats/{chat}/turns"
        return window.ok("POST", path, turn | {"column": column, "columns": columns})["messages"][1]

    left, right = ask(0, 2), ask(1, 2)
    assert window.ok("GET", f"chats/{chat}")["leaves"] == [left["id"], right["id"]]
    kept = [right["id"], right["id"]]
    assert window.ok("PATCH", f"chats/{chat}", {"leaves": kept})["leaves"] == kept
    alone = ask(0, 1)
    assert window.ok("GET", f"chats/{chat}")["leaves"] == [alone["id"]]
    turn = {"text": "x", "request": REQUEST, "column": 1, "columns": 1}
    assert window.error("POST", f"chats/{chat}/turns", turn) == (400, "column")


@pytest.mark.parametrize("leaves", ["x", [1, 2, 3], [True], [0], [4711], [10**30], None])
def test_bad_leaves_are_refused(window: Window, leaves: Any) -> None:
    chat = start(window)
    status, _ = window.send("PATCH", f"chats/{chat}", {"leaves": leaves})

    assert status == (200 if leaves is None else 400)


def test_a_full_history_asks_to_delete_something(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_CHATS", 1)
    monkeypatch.setattr(services, "MAX_MESSAGES", 2)
    chat = start(window)
    say(window, chat, "One?")

    assert window.error("POST", "chats") == (409, "too_many")
    turn = {"text": "Two?", "request": REQUEST}
    assert window.error("POST", f"chats/{chat}/turns", turn) == (409, "too_many")
    window.ok("DELETE", f"chats/{chat}")
    assert not Message.objects.exists()


def test_an_answer_ends_once(window: Window) -> None:
    chat = start(window)
    _, answer = say(window, chat, "One?")
    row = Message.objects.get(pk=answer["id"])
    end(answer, "First.")

    assert not services.end_answer(message=row, answer=Answer(text="Second."))

    row.refresh_from_db()
    assert (row.state, row.text) == (MessageState.DONE, "First.")


def test_what_was_read_before_undoes_no_change(window: Window) -> None:
    chat = start(window)
    window.ok("PATCH", f"chats/{chat}", {"shared": True})
    before = Chat.objects.get(pk=chat)
    window.ok("PATCH", f"chats/{chat}", {"shared": False})

    renamed = services.change_chat(chat=before, changes={"title": "Mine"})

    assert (renamed.title, renamed.share_token) == ("Mine", None)
    assert Chat.objects.get(pk=chat).share_token is None
    window.ok("DELETE", f"chats/{chat}")
    for change in (
        lambda: services.change_chat(chat=before, changes={"title": "Back"}),
        lambda: services.share_chat(chat=before, is_shared=True),
    ):
        with pytest.raises(LlameroError) as refused:
            change()
        assert refused.value.status == 404
    assert not Chat.objects.exists()


def test_whoever_is_not_signed_in_is_told_so_and_sent_nowhere(db: None, plain: Client) -> None:
    for client in (Client(), plain):
        for path in ("chats", "models", "presets"):
            answer = client.get(f"/playground/{path}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "not_signed_in")


def test_a_shared_chat_is_read_by_whoever_is_signed_in(window: Window, plain: Client) -> None:
    chat = start(window)
    _, answer = say(window, chat, "</script><script>alert(1)</script>")
    end(answer, "Shown.")
    say(window, chat, "Hidden?", answer["id"])
    window.ok("PATCH", f"chats/{chat}", {"leaves": [answer["id"]]})
    address = window.ok("PATCH", f"chats/{chat}", {"shared": True})["shared_at"]

    page = plain.get(address)

    assert "Shown." in page.content.decode()
    assert "Hidden?" not in page.content.decode()
    assert "<script>alert" not in page.content.decode()
    assert "run_" not in page.content.decode()
    assert "Be secret." not in page.content.decode()
    assert "unsafe" not in page["Content-Security-Policy"]
    assert Client().get(address).status_code == 302
    assert plain.post(address).status_code == 405


def test_an_address_that_was_taken_back_never_opens_again(window: Window, plain: Client) -> None:
    chat = start(window)
    first = window.ok("PATCH", f"chats/{chat}", {"shared": True})["shared_at"]
    window.ok("PATCH", f"chats/{chat}", {"shared": False})
    second = window.ok("PATCH", f"chats/{chat}", {"shared": True})["shared_at"]

    assert plain.get(first).status_code == 404
    assert plain.get(second).status_code == 200
    assert len(first.rpartition("/")[2]) >= 32


def test_presets_are_each_user_s_own(window: Window, other: Window) -> None:
    saved = window.ok("POST", "presets", {"name": "Brief", "settings": {"system": "Be brief."}})
    window.ok("POST", "presets", {"name": "Brief", "settings": {"system": "Be very brief."}})

    [kept] = window.ok("GET", "presets")["presets"]

    assert kept["settings"] == {"system": "Be very brief."}
    assert other.ok("GET", "presets")["presets"] == []
    assert other.error("DELETE", f"presets/{saved['id']}")[0] == 404
    assert window.error("POST", "presets", {"name": " ", "settings": {}}) == (400, "name")
    assert window.error("POST", "presets", {"name": "x", "settings": 1}) == (400, "settings")
    window.ok("DELETE", f"presets/{saved['id']}")
    assert window.ok("GET", "presets")["presets"] == []


def test_the_settings_begin_with_a_deployments_defaults(window: Window) -> None:
    model = make_model()
    make_version(model)
    make_deployment(
        model, default_temperature=0.3, default_n_predict=64, default_repeat_penalty=1.1
    )
    (told,) = window.ok("GET", "models")["models"]
    assert told["defaults"] == {"temperature": 0.3, "max_tokens": 64}


@pytest.mark.parametrize("path", ["chats", "chats/1", "presets", "models"])
def test_other_methods_are_refused(window: Window, path: str) -> None:
    assert window.error("PUT", path)[0] == 405


def test_requests_from_other_pages_are_refused(window: Window) -> None:
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(window.user)

    assert careful.post("/playground/chats").status_code == 403

    assert not Chat.objects.exists()
