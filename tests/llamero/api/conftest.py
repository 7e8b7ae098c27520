"""The API over a fake data plane: two models, one key, no database."""

import pytest
from django.contrib.auth.models import User

from inference.protocol.replicas import ModelKind
from llamero import dispatch
from llamero.accounts import authentication
from llamero.accounts.selectors import Caller
from llamero.api import async_view, model_choice
from llamero.api.early_refusals import EarlyRefusals
from llamero.limits import metering
from llamero.limits.selectors import CallLimits
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import KEY
from tests.llamero.api.fakes import FakeDispatcher, make_served

LIMITED_KEY = KEY.replace("abcdefgh", "limitedx")
SERVED = (
    make_served("mini", ModelKind.EMBEDDING, pk=2),
    make_served("smol", aliases=("tiny",)),
    make_served("org/big:1b", pk=3),
)
_CALLERS = {
    KEY: Caller(User(pk=1, username="ada"), 1, "key:1"),
    LIMITED_KEY: Caller(User(pk=1, username="ada"), 2, "key:2", frozenset({2})),
}


@pytest.fixture(autouse=True)
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> FakeDispatcher:
    """The fake that every request meets."""
    fake = FakeDispatcher()
    monkeypatch.setattr(dispatch, "get_dispatcher", lambda: fake)
    # What one test is refused must not meet the next.
    monkeypatch.setattr(async_view, "early_refusals", EarlyRefusals())
    return fake


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServedModel]:
    """The models and keys there are; a test may add models."""
    models = list(SERVED)

    def find(name: str) -> ServedModel | None:
        return next((one for one in models if name == one.id or name in one.aliases), None)

    monkeypatch.setattr(model_choice, "find_served_model", find)
    monkeypatch.setattr(model_choice, "list_served_models", lambda: list(models))
    monkeypatch.setattr(authentication, "find_caller", _CALLERS.get)
    monkeypatch.setattr(metering, "find_limits", find_no_limits)
    return models


async def find_no_limits(caller: Caller, model_pk: int | None = None) -> CallLimits:
    """Nothing is limited."""
    return CallLimits()
