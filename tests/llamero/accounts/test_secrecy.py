"""Keys that are driven through errors at debug level turn up nowhere."""

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from inference.relay.connect import connect
from llamero import dispatch
from llamero.accounts import wrong_keys
from llamero.accounts.models import ApiKey
from llamero.accounts.scopes import Scope
from llamero.accounts.services import IssuedKey, issue_api_key, revoke_api_keys, rotate_api_key
from llamero.accounts.tokens.issuers import recent_issuers
from llamero.accounts.uses import uses
from llamero.api.openai import models as models_view
from llamero.dispatch import wakening
from llamero.websocket_urls import websocket_application
from models_registry.models import Deployment, Model, ModelVersion
from tests.llamero.accounts.tokens.conftest import make_issuer
from tests.llamero.accounts.tokens.signing import claims_of, sign
from tests.llamero.api.asgi_client import get, post
from tests.llamero.streaming.socket_client import SocketClient

CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def keys(transactional_db: None) -> Callable[[int], list[str]]:
    """Make keys in every state, and tokens, of a user with a model that no replica serves."""
    model = Model.objects.create(slug="smol", title="Smol", kind="chat")
    ModelVersion.objects.create(model=model, number=1, state="ready", is_current=True)
    Deployment.objects.create(slug="smol", model=model, state="ready")
    user = User.objects.create_superuser("root", password="toor")
    recent_issuers.clear()
    make_issuer()

    def make(number: int) -> list[str]:
        issued: list[IssuedKey] = [issue_api_key(user=user, name=str(at)) for at in range(number)]
        issued.append(issue_api_key(user=user, name="narrow", scopes=[Scope.MODELS]))
        issued.append(issue_api_key(user=user, name="away", networks=["192.0.2.7"]))
        issued.append(rotate_api_key(key=issued[0].key, grace=timedelta(days=1)))
        revoke_api_keys(keys=[issued[1].key])
        return [one.secret_text for one in issued]

    return make


def make_tokens() -> list[str]:
    """Sign tokens, good ones and bad ones."""
    claims = claims_of(preferred_username="root")
    return [sign(claims), sign(claims | {"exp": 1}), sign(claims, key="other", kid="rsa")]


async def drive(key: str) -> None:
    """Show a key everywhere, also where it does not belong."""
    await post("/v1/chat/completions", b"{", key=key)
    await post("/v1/chat/completions", {"model": key, "messages": []}, key=key)
    await post("/v1/chat/completions", CHAT, key=key, headers={"idempotency-key": "one"})
    await post("/v1/completions", {"model": "smol", "prompt": 5, "stream": True}, key=key)
    await get(f"/v1/responses/resp_0?api_key={key}", key=key)
    await get("/v1/models", key=None, headers={"x-api-key": key + "x"})
    failed = await get("/v1/models", key=key)
    assert failed.status in (401, 429, 500)
    socket = SocketClient(
        websocket_application, "/ws/v1/chat", [(b"host", b"localhost")], [f"llamero.key.{key}"]
    )
    await socket.connect()
    await socket.send_json_to({"type": "auth", "key": key})
    await socket.receive_output()
    await socket.disconnect()


def look_everywhere(valkey_url: str) -> str:
    """Give all that the database, the broker and the admin's pages of keys hold."""
    found = [str(list(model._default_manager.values())) for model in apps.get_models()]
    with connect(valkey_url) as redis:
        found += [str((key, redis.dump(key))) for key in redis.scan_iter(count=1000)]
    browser = Client()
    browser.force_login(User.objects.get())
    pages = [reverse("admin:accounts_apikey_changelist")]
    rotated = ApiKey.objects.exclude(rotated_at=None).get().pk
    pages += [
        reverse(f"admin:accounts_apikey_{page}", args=[rotated])
        for page in ("change", "history", "rotate")
    ]
    return "".join([*found, *(browser.get(page).content.decode() for page in pages)])


def words_of(text: str) -> str:
    """Give what may be a secret, each once: of a long text little is left."""
    return " ".join(set(re.findall(r"[0-9A-Za-z_-]{20,}", text)))


@pytest.mark.parametrize(
    "number", [4, pytest.param(1000, marks=(pytest.mark.slow, pytest.mark.timeout(600)))]
)
async def test_no_key_is_found_anywhere(
    number: int,
    keys: Callable[[int], list[str]],
    valkey_url: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("by a test")

    settings.DEBUG, settings.WRONG_KEYS_PER_MINUTE = True, 3
    monkeypatch.setattr(wakening, "UNCONTROLLED_SECONDS", 0.0)
    monkeypatch.setattr(wrong_keys, "HOLD_SECONDS", 0.0)
    monkeypatch.setattr(models_view, "list_usable_models", fail)
    made = await sync_to_async(keys)(number)
    for logger in (None, "django"):
        caplog.set_level(logging.DEBUG, logger)
    tokens = make_tokens()
    logged, num_failed = set(), 0
    for key in [*made, *tokens]:
        await drive(key)
        logged.add(words_of(caplog.text))
        num_failed += "by a test" in caplog.text and "SELECT" in caplog.text
        caplog.clear()
    assert num_failed >= number
    settings.DEBUG = False
    await sync_to_async(uses.write)()
    held = await sync_to_async(look_everywhere)(valkey_url)
    await dispatch.get_dispatcher().close()
    shown, secrets = zip(*(key.split("_")[1:] for key in made), strict=True)
    assert all(prefix in held for prefix in shown[1:])
    parts = [part[:30] for token in tokens for part in token.split(".")[1:]]
    found = words_of(held) + " ".join(logged)
    assert not [secret for secret in (*secrets, *parts) if secret in found]
