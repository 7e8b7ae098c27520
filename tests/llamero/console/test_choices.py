"""Boxes in which a row of another table is chosen: a list of few, a search of many."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteMixin
from django.contrib.auth.models import Permission, User
from django.test import Client, RequestFactory
from django.urls import reverse

from llamero.accounts.models import ApiKey, Membership, Team, TeamRole
from llamero.accounts.services import issue_api_key
from llamero.people.roles import OPERATORS, VIEWERS, make_roles
from models_registry.admin import few_choices
from models_registry.admin.search_box import ManySearchBox, SearchBox
from models_registry.models import Model, ModelImport
from tests.llamero.accounts.key_forms import EMPTY
from tests.llamero.people.conftest import browser_of
from tests.models_registry.factories import make_model

pytestmark = pytest.mark.django_db
REPORT = "/admin/usage/usagehour/"
SEARCH = reverse("admin:autocomplete")
PAGES = [f"/admin/models_registry/model/{name}/" for name in ("upload", "fetch", "import")]
# No number, more digits than a database takes, and no row.
NO_ROWS = ("x", "9" * 30, "٩٩٩")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[Model]:
    """More models than a page lists."""
    monkeypatch.setattr(few_choices, "MAX_CHOICES", 2)
    return [make_model(f"crowd-{number}") for number in range(3)]


def box_of(page: str, name: str) -> str:
    found = re.search(rf'<select name="{name}".*?</select>', page, re.DOTALL)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("path", [REPORT, *PAGES])
def test_few_are_listed_and_many_are_searched(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for number in range(3):
        make_model(f"crowd-{number}")
    page = admin_client.get(path).text
    assert box_of(page, "model").count("crowd-") == 3
    assert "select2" not in page
    monkeypatch.setattr(few_choices, "MAX_CHOICES", 2)
    page = admin_client.get(path).text
    box = box_of(page, "model")
    empty = "All" if path == REPORT else "A new model"
    assert f'data-placeholder="{empty}"' in box
    assert "crowd-" not in box
    assert 'for="id_model"' in page
    assert "select2.full" in page


def test_a_report_names_who_was_chosen(admin_client: Client, models: list[Model]) -> None:
    box = box_of(admin_client.get(REPORT, {"model": models[1].pk}).text, "model")
    assert f'<option value="{models[1].pk}" selected>crowd-1</option>' in box
    for value in NO_ROWS:
        answer = admin_client.get(REPORT, {"model": value})
        assert answer.status_code == 200
        assert '<p class="usage-error">Select a valid choice' in answer.text


def test_an_upload_that_is_opened_again_names_its_model(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, models: list[Model]
) -> None:
    wish = {"model": "crowd-2", "is_new_version": True, "is_deployed": False}
    shown = ModelImport.objects.create(owner="user:1", wish=wish)
    for limit in (2, 3):
        monkeypatch.setattr(few_choices, "MAX_CHOICES", limit)
        box = box_of(admin_client.get(PAGES[0], {"import": shown.pk}).text, "model")
        assert f'<option value="{models[2].pk}" selected>crowd-2</option>' in box


def test_what_is_chosen_by_a_search_is_checked_like_any_other(
    admin_client: Client, models: list[Model]
) -> None:
    for value in NO_ROWS:
        answer = admin_client.post(PAGES[1], {"urls": "https://x.example/a.gguf", "model": value})
        assert answer.status_code == 200
        assert "Select a valid choice" in answer.text


def test_models_of_a_key_are_searched_when_they_are_many(
    admin_client: Client, admin_user: User, models: list[Model]
) -> None:
    add = reverse("admin:accounts_apikey_add")
    page = admin_client.get(add).text
    assert "crowd-" not in page
    assert "multiple" in box_of(page, "allowed_models")
    asked: dict[str, Any] = {"name": "ci", "user": admin_user.pk} | EMPTY
    for value in NO_ROWS:
        answer = admin_client.post(add, asked | {"allowed_models": [models[0].pk, value]})
        assert answer.status_code == 200
        assert "is not a valid value" in answer.text or "Select a valid choice" in answer.text
        assert "crowd-0</option>" in box_of(answer.text, "allowed_models")
    admin_client.post(add, asked | {"allowed_models": [models[0].pk, models[2].pk]})
    key = ApiKey.objects.get()
    assert {one.slug for one in key.allowed_models.all()} == {"crowd-0", "crowd-2"}
    page = admin_client.get(reverse("admin:accounts_apikey_change", args=[key.pk])).text
    box = box_of(page, "allowed_models")
    assert ("crowd-0" in box, "crowd-1" in box, "crowd-2" in box) == (True, False, True)


@pytest.mark.parametrize(
    ("page", "field"),
    [
        ("accounts_apikey", "user"),
        ("limits_limitset", "key"),
        ("models_registry_uploadquota", "user"),
        ("models_registry_deployment", "draft_version"),
    ],
)
def test_no_value_of_a_box_that_searches_is_a_crash(
    admin_client: Client, page: str, field: str
) -> None:
    model = make_model("solo")
    for send, value in ((admin_client.get, "x"), (admin_client.post, "9" * 30)):
        asked: dict[str, Any] = {"model": model.pk, field: value}
        assert send(reverse(f"admin:{page}_add"), asked).status_code == 200


def boxes_of(fields: dict[str, Any]) -> list[Any]:
    drawn = [getattr(one.widget, "widget", one.widget) for one in fields.values()]
    return [one for one in drawn if isinstance(one, AutocompleteMixin)]


def test_every_box_that_searches_is_of_the_safe_kind(admin_user: User) -> None:
    request = RequestFactory().get("/")
    request.user = admin_user
    found = []
    for page in admin.site._registry.values():
        found += boxes_of(page.get_form(request).base_fields)
        for inline in page.get_inline_instances(request):
            found += boxes_of(inline.get_formset(request).form.base_fields)
    assert len(found) > 10
    assert all(isinstance(one, SearchBox | ManySearchBox) for one in found)


def found_by(browser: Client, source: str, field: str, term: str = "") -> set[str] | int:
    """Search as a box does; the names that were found, or the status of a refusal."""
    app, model = source.split(".")
    asked = {"app_label": app, "model_name": model, "field_name": field, "term": term}
    answer = browser.get(SEARCH, asked)
    if answer.status_code != 200:
        return answer.status_code
    return {one["text"] for one in answer.json()["results"]}


def test_a_search_finds_what_one_may_see() -> None:
    make_roles()
    make_model("tiny")
    owner = User.objects.create_user("pat")
    key = issue_api_key(user=owner, name="pats").key
    viewer, operator = browser_of(VIEWERS, name="vic"), browser_of(OPERATORS, name="oda")
    nobody, member = browser_of(None), browser_of(None, name="mia", is_staff=False)
    wanted: list[tuple[str, str, str]] = [
        ("model", "tiny", "tin"),
        ("key", str(key), "pats"),
        ("user", "pat", "pat"),
    ]
    for field, name, term in wanted:
        found = 403 if field == "user" else {name}
        assert found_by(viewer, "usage.usagealert", field, term) == found
        assert found_by(operator, "usage.usagealert", field, term) == {name}
        assert found_by(nobody, "usage.usagealert", field, term) == 403
        assert found_by(member, "usage.usagealert", field, term) == 302
        assert found_by(Client(), "usage.usagealert", field, term) == 302


def test_a_teams_admin_finds_the_teams_keys_alone() -> None:
    browser = browser_of(None)
    team = Team.objects.create(name="red")
    Membership.objects.create(team=team, user=User.objects.get(username="sam"), role=TeamRole.ADMIN)
    own = issue_api_key(team=team, name="robot").key
    issue_api_key(user=User.objects.create_user("pat"), name="robot-of-pat")
    assert found_by(browser, "limits.limitset", "key", "robot") == {str(own)}
    for field in ("user", "team", "model"):
        assert found_by(browser, "limits.limitset", field) == 403


def test_a_report_is_narrowed_to_what_one_may_see(client: Client) -> None:
    model = make_model("hidden-one")
    user = User.objects.create_user("vic", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_usagehour"))
    client.force_login(user)
    page = client.get(REPORT).text
    assert '<select name="group"' in page
    assert not re.search('<select name="(model|key|user|team)"', page)
    refused = client.get(REPORT, {"model": model.pk}).text
    assert "You may not choose a model" in refused
    assert "hidden-one" not in refused
    csv = client.get(reverse("admin:usage_report_csv"), {"model": model.pk})
    assert (csv.status_code, "You may not choose a model" in csv.text) == (400, True)


def test_models_are_offered_to_those_who_may_see_them(client: Client) -> None:
    make_model("hidden-one")
    user = User.objects.create_user("vic", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="add_model"))
    client.force_login(user)
    for path in PAGES:
        page = client.get(path).text
        assert "A new model" in box_of(page, "model")
        assert "hidden-one" not in page


def test_a_list_offers_to_show_all_when_it_shows_a_part(admin_client: Client) -> None:
    make_model("tiny")
    url = reverse("admin:models_registry_model_changelist")
    assert "Show all" not in admin_client.get(url).text
    for asked in ({"q": "tiny"}, {"kind__exact": "chat"}):
        assert "1 result (" in admin_client.get(url, asked).text


@pytest.mark.parametrize("term", ["a " * 1100, "\0", "a" * 1001])
def test_no_search_is_a_crash(admin_client: Client, term: str) -> None:
    box = {"app_label": "accounts", "model_name": "apikey", "field_name": "user"}
    for path, asked in ((SEARCH, box | {"term": term}), (PAGES[0][:-7], {"q": term})):
        answer = admin_client.get(path, asked)
        assert answer.status_code == 400
        assert "at most 1000 characters" in answer.text


def test_a_search_of_many_words_is_answered(admin_client: Client) -> None:
    assert admin_client.get(PAGES[0][:-7], {"q": "a " * 499}).status_code == 200
    assert found_by(admin_client, "accounts.apikey", "user", "a " * 499) == {"admin"}
