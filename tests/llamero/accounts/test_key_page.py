"""The page of one key: its state as a label, and steps that ask before they do anything."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from llamero.accounts.models import ApiKey, KeyState
from llamero.accounts.services import issue_api_key, revoke_api_keys, rotate_api_key
from llamero.audit.models import Change


@pytest.fixture
def browser(db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="toor"))
    return client


@pytest.fixture
def key(ada: User) -> ApiKey:
    return issue_api_key(user=ada, name="laptop").key


def page_of(browser: Client, key: ApiKey) -> str:
    return browser.get(reverse("admin:accounts_apikey_change", args=[key.pk])).content.decode()


def step_url(key: ApiKey, step: str) -> str:
    return reverse("admin:accounts_apikey_step", args=[key.pk, step])


def test_the_state_is_a_label(browser: Client, key: ApiKey) -> None:
    page = page_of(browser, key)
    assert "bg-green-100" in page
    assert "&#x27;active&#x27;" not in page


def test_a_key_is_disabled_enabled_and_revoked_on_its_page(browser: Client, key: ApiKey) -> None:
    for step, state in (
        ("disable", KeyState.DISABLED),
        ("enable", KeyState.ACTIVE),
        ("revoke", KeyState.REVOKED),
    ):
        assert step_url(key, step) in page_of(browser, key)
        before = ApiKey.objects.get().state
        assert browser.get(step_url(key, step)).status_code == 302
        assert "Leave it as it is" in browser.post(step_url(key, step)).content.decode()
        assert ApiKey.objects.get().state == before
        assert browser.post(step_url(key, step), {"confirmed": "yes"}).status_code == 302
        assert ApiKey.objects.get().state == state
    assert LogEntry.objects.filter(object_id=str(key.pk)).count() == 3
    assert Change.objects.count() >= 3
    assert step_url(key, "enable") not in page_of(browser, key)
    browser.post(step_url(key, "enable"), {"confirmed": "yes"})
    assert ApiKey.objects.get().state == KeyState.REVOKED


def test_who_may_only_look_takes_no_steps(client: Client, key: ApiKey, ada: User) -> None:
    ada.is_staff = True
    ada.save()
    ada.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    client.force_login(ada)
    assert step_url(key, "revoke") not in page_of(client, key)
    assert client.post(step_url(key, "revoke"), {"confirmed": "yes"}).status_code == 403
    assert ApiKey.objects.get().state == KeyState.ACTIVE


def test_a_deletion_says_what_goes_and_that_keys_can_be_revoked(
    browser: Client, key: ApiKey
) -> None:
    alone = browser.get(reverse("admin:accounts_apikey_delete", args=[key.pk]))
    data = {"action": "delete_selected", "_selected_action": [key.pk]}
    together = browser.post(reverse("admin:accounts_apikey_changelist"), data)
    for answer in (alone, together):
        assert "revoke it instead" in answer.content.decode()
    assert reverse("admin:accounts_apikey_change", args=[key.pk]) in alone.content.decode()


def test_a_page_that_cannot_be_changed_says_what_a_key_may(
    client: Client, key: ApiKey, ada: User
) -> None:
    narrow = issue_api_key(
        user=ada, name="narrow", scopes=["inference", "usage"], networks=["10.0.0.0/8", "::1"]
    ).key
    ada.is_staff = True
    ada.save()
    ada.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    client.force_login(ada)

    wide_page, narrow_page = page_of(client, key), page_of(client, narrow)

    for words in (
        "Never",
        "Every model",
        "All scopes but adapters:write and upload",
        "Any network",
    ):
        assert f">{words}</div>" in wide_page
    assert ">inference<br>usage</div>" in narrow_page
    assert ">10.0.0.0/8<br>::1</div>" in narrow_page
    assert "[]</" not in wide_page


def test_a_revoked_key_is_offered_nothing_that_ends_it(browser: Client, key: ApiKey) -> None:
    rotate_api_key(key=key, grace=timedelta(days=1))
    key.refresh_from_db()
    old = f"llm_{key.old_prefix}_"
    assert old in page_of(browser, key)
    revoke_api_keys(keys=[key])

    assert old not in page_of(browser, key)
    deletion = browser.get(reverse("admin:accounts_apikey_delete", args=[key.pk])).text
    assert "With a key go its limits" in deletion
    assert "revoke it" not in deletion
    rotation = browser.get(reverse("admin:accounts_apikey_rotate", args=[key.pk]), follow=True)
    assert "was revoked, and stays so." in rotation.text
    assert rotation.redirect_chain
