"""Keys in the admin: shown once, and never changed behind anyone's back."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from llamero.accounts.models import ApiKey, KeyState
from llamero.accounts.selectors import find_caller
from llamero.accounts.services import issue_api_key
from models_registry.models import Model
from tests.llamero.accounts.key_forms import EMPTY

ADD = "admin:accounts_apikey_add"
LIST = "admin:accounts_apikey_changelist"


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("root", password="toor")


@pytest.fixture
def browser(admin: User, client: Client) -> Client:
    client.force_login(admin)
    return client


def create(browser: Client, user: User, **fields: object) -> bytes:
    data = {"name": "laptop", "user": user.pk} | EMPTY | fields
    answer = browser.post(reverse(ADD), data)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    return answer.content


def test_a_new_key_is_shown_on_one_page_only(browser: Client, ada: User, model: Model) -> None:
    page = create(browser, ada, allowed_models=[model.pk])
    text = re.search(rb"llm_[0-9A-Za-z]{8}_[0-9A-Za-z]{40}", page)
    assert text is not None
    key = ApiKey.objects.get()
    assert list(key.allowed_models.all()) == [model]
    caller = find_caller(text[0].decode())
    assert caller is not None
    assert caller.user == ada
    secret = text[0].split(b"_")[2]
    change = reverse("admin:accounts_apikey_change", args=[key.pk])
    for url in (reverse(LIST), change, reverse("admin:accounts_apikey_history", args=[key.pk])):
        answer = browser.get(url)
        assert answer.status_code == 200
        assert secret not in answer.content
        assert key.digest.encode() not in answer.content
    assert secret.decode() not in str(list(LogEntry.objects.values()))
    assert secret.decode() not in str(dict(browser.session))
    assert secret.decode() not in str(browser.cookies)


def test_a_change_does_not_touch_the_digest(browser: Client, ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    url = reverse("admin:accounts_apikey_change", args=[issued.key.pk])
    data = {"name": "desk", "enabled": "on", "digest": "0" * 64, "user": 1, "prefix": "zzzzzzzz"}
    answer = browser.post(url, data | EMPTY)
    assert answer.status_code == 302
    key = ApiKey.objects.get()
    assert (key.name, key.digest, key.prefix) == ("desk", issued.key.digest, issued.key.prefix)
    assert find_caller(issued.secret_text) is not None


def test_keys_are_revoked_from_the_list(browser: Client, ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    data = {"action": "revoke", "_selected_action": [issued.key.pk]}
    assert browser.post(reverse(LIST), data).status_code == 302
    assert ApiKey.objects.get().state == KeyState.REVOKED
    assert find_caller(issued.secret_text) is None
    change = browser.get(reverse("admin:accounts_apikey_change", args=[issued.key.pk]))
    assert b'name="enabled"' not in change.content


def test_staff_without_the_right_make_no_keys(client: Client, ada: User) -> None:
    ada.is_staff = True
    ada.save()
    client.force_login(ada)
    assert client.get(reverse(ADD)).status_code == 403
    assert client.post(reverse(ADD), {"name": "x", "user": ada.pk}).status_code == 403
    assert not ApiKey.objects.exists()
