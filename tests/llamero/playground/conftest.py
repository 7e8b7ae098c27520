"""Two people of the staff with their browsers, and how they talk to the playground."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client


class Window:
    """A window of the playground: sends JSON, gets JSON."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.client = Client()
        self.client.force_login(user)

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; give the status and the document."""
        answer = self.client.generic(
            method, f"/playground/{path}", _encode(body), content_type="application/json"
        )
        return answer.status_code, answer.json() if answer.content else None

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed."""
        status, document = self.send(method, path, body)
        assert status in (200, 204), document
        return document

    def error(self, method: str, path: str, body: Any = None) -> tuple[int, str | None]:
        """Send a request that must fail; give the status, and the field or else the code."""
        status, document = self.send(method, path, body)
        assert status >= 400, document
        return status, document["error"]["param"] or document["error"]["code"]


def _encode(body: Any) -> Any:
    return body if isinstance(body, bytes) else json.dumps({} if body is None else body)


@pytest.fixture
def window(db: None) -> Window:
    """A window of Sam's."""
    return Window(User.objects.create_user("sam", password="x", is_staff=True))


@pytest.fixture
def other(db: None) -> Window:
    """A window of somebody else's."""
    return Window(User.objects.create_user("kim", password="x", is_staff=True))


@pytest.fixture
def plain(db: None) -> Client:
    """The browser of somebody who is signed in, but not of the staff."""
    browser = Client()
    browser.force_login(User.objects.create_user("pat", password="x"))
    return browser
