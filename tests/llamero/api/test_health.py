"""A gateway that works says so, one that cannot serve says what it lacks."""

import pytest
from django.db import OperationalError

from inference.protocol.errors import ErrorCode
from llamero.api import health
from tests.llamero.api.asgi_client import get
from tests.llamero.api.described import check
from tests.llamero.api.fakes import FakeDispatcher, engine_error

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_lives_and_is_ready(dispatcher: FakeDispatcher) -> None:
    assert (await get("/livez", key=None)).json() == {"status": "ok"}
    ready = await get("/readyz", key=None)
    assert ready.json() == {"status": "ok", "checks": {"database": "ok", "broker": "ok"}}
    check("GET", "/readyz", ready)


async def test_what_runs_beside_requests_has_to_go_on(dispatcher: FakeDispatcher) -> None:
    dispatcher.trouble = "a task that reads events has ended"
    answer = await get("/livez", key=None)
    assert answer.status == 503
    assert "a task that reads events has ended" in answer.error["message"]


async def test_without_a_broker_it_lives_but_cannot_serve(dispatcher: FakeDispatcher) -> None:
    dispatcher.facts_error = engine_error(ErrorCode.BROKER_UNAVAILABLE)
    answer = await get("/readyz", key=None)
    assert answer.status == 503
    assert answer.error["message"] == "Not now: broker: it does not answer."
    check("GET", "/readyz", answer)
    assert (await get("/livez", key=None)).status == 200


async def test_without_a_database_it_lives_but_cannot_serve(
    dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OperationalError

    monkeypatch.setattr(health, "_ask_database", fail)
    answer = await get("/readyz", key=None)
    assert answer.error["message"] == "Not now: database: it does not answer."
    assert int(answer.headers["retry-after"]) > 0
    assert (await get("/livez", key=None)).status == 200
