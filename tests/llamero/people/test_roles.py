"""What each role sees and may do in the admin: what is hidden from it is refused as well."""

import re
from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from llamero.audit.models import Change
from llamero.people.roles import OPERATORS, ROLES, VIEWERS, codes_of, make_roles
from tests.llamero.people.conftest import browser_of

# Things of the admin that no role may touch.
ONLY_SUPERUSERS = {
    "accounts.identity",
    "accounts.tokenissuer",
    "auth.group",
    "auth.user",
    "control.nodetoken",
}
# What of the admin every member of the staff may open, and what answers on its own terms.
FOR_ALL_STAFF = re.compile(
    r"admin/(|login/|logout/|password_change/(done/)?|jsi18n/|autocomplete/|search/|r/1/1/|.*toggle-sidebar/|1)$"
)


def test_roles_have_exactly_their_permissions(db: None) -> None:
    make_roles()
    for role in ROLES:
        group = Group.objects.get(name=role)
        codes = {
            f"{one.content_type.app_label}.{one.codename}"
            for one in group.permissions.select_related("content_type")
        }
        assert codes == codes_of(role)


def test_a_role_that_was_changed_by_hand_is_set_right(db: None) -> None:
    make_roles()
    group = Group.objects.get(name=VIEWERS)
    group.permissions.set(Group.objects.get(name=OPERATORS).permissions.all())

    make_roles()

    assert group.permissions.count() == len(codes_of(VIEWERS))


def test_every_thing_of_the_admin_is_given_to_a_role_or_kept_from_all() -> None:
    labels = {model._meta.label_lower for model in admin.site._registry}

    assert labels - set(ROLES[OPERATORS]) - ONLY_SUPERUSERS == set()


def test_no_role_changes_who_is_trusted() -> None:
    for role in ROLES:
        assert not {
            code
            for code in codes_of(role)
            if not code.split(".")[1].startswith("view_")
            and code.split("_", 1)[1] in {label.split(".")[1] for label in ONLY_SUPERUSERS}
        }


# Some hundred pages are made.
@pytest.mark.slow
@pytest.mark.parametrize("role", [*ROLES, None])
def test_pages_of_things_open_as_the_role_says(role: str | None, things: dict[str, int]) -> None:
    browser = browser_of(role)
    codes = codes_of(role) if role else set()
    home = browser.get("/admin/").content.decode()
    for model, model_admin in admin.site._registry.items():
        app, name = model._meta.label_lower.split(".")
        base = f"/admin/{app}/{name}/"
        may = {
            verb: f"{app}.{verb}_{name}" in codes for verb in ("view", "add", "change", "delete")
        }
        # The way to a new model leads over the page of imports.
        status = {path: browser.get(base + path, follow=True).status_code for path in ("", "add/")}
        assert (status[""] == 200) == may["view"], base
        adds = may["add"] and model_admin.has_add_permission(_request(browser))
        assert (status["add/"] == 200) == adds, base
        # The menu tells of it exactly if it opens.
        assert (f'href="{base}"' in home) == may["view"], base
        pk = things.get(f"{app}.{name}")
        if pk is not None:
            assert (browser.get(f"{base}{pk}/change/").status_code == 200) == may["view"], base
            assert (browser.get(f"{base}{pk}/history/").status_code == 200) == may["view"], base


def _request(browser: Client) -> HttpRequest:
    request: HttpRequest = browser.get("/admin/").wsgi_request
    return request


@pytest.mark.parametrize("role", [VIEWERS, pytest.param(None, marks=pytest.mark.slow)])
def test_who_may_only_look_changes_nothing_at_any_address(
    role: str | None, things: dict[str, int]
) -> None:
    browser = browser_of(role)
    before = Change.objects.count()
    for path in sorted(set(_addresses(things))):
        if FOR_ALL_STAFF.match(path):
            continue
        answer = browser.post(f"/{path}", {"post": "yes", "hours": "0", "slug": "x"})
        if answer.status_code == 200:
            # A page that may be seen, to which something was sent that it does not take.
            assert browser.get(f"/{path}").status_code == 200, path
            continue
        assert answer.status_code in (302, 403, 404, 405), path
        if answer.status_code == 302:
            # Away from what is not there, with a word about that.
            assert answer["Location"] in ("/admin/", "../") or "/admin/" in answer["Location"], path
    assert Change.objects.count() == before


ACTIONS = [
    ("accounts/apikey", "accounts.apikey"),
    ("models_registry/deployment", "models_registry.deployment"),
    ("models_registry/model", "models_registry.model"),
    ("control/node", "control.node"),
    ("accounts/team", "accounts.team"),
]


@pytest.mark.parametrize(("path", "label"), ACTIONS)
def test_a_viewer_is_offered_no_action_and_refused_each(
    path: str, label: str, things: dict[str, int]
) -> None:
    model = next(one for one in admin.site._registry if one._meta.label_lower == label)
    names = [
        action if isinstance(action, str) else action.__name__
        for action in admin.site._registry[model].actions or ()
    ]
    browser = browser_of(VIEWERS)
    before = Change.objects.count()
    page = browser.get(f"/admin/{path}/").content.decode()

    for name in [*names, "delete_selected"]:
        assert f'<option value="{name}"' not in page
        sent = {"action": name, "_selected_action": things[label], "post": "yes", "index": 0}
        browser.post(f"/admin/{path}/", sent)

    assert Change.objects.count() == before
    assert model._base_manager.filter(pk=things[label]).exists()


def test_an_operator_deploys_and_manages_keys(things: dict[str, int]) -> None:
    browser = browser_of(OPERATORS)
    for path, label, action in (
        ("accounts/apikey", "accounts.apikey", "revoke"),
        ("models_registry/deployment", "models_registry.deployment", "disable"),
    ):
        sent = {"action": action, "_selected_action": things[label]}
        browser.post(f"/admin/{path}/", sent)
        change = Change.objects.filter(kind=label).latest("pk")
        assert (change.actor_name, change.source, change.action) == ("sam", "page", "changed")
        assert change.object_id == str(things[label])


def test_an_operator_makes_nobody_a_superuser(things: dict[str, int]) -> None:
    browser = browser_of(OPERATORS)
    pat = things["auth.user"]

    answer = browser.post(f"/admin/auth/user/{pat}/change/", {"is_superuser": "on"})
    assert answer.status_code == 403
    assert browser.get(f"/admin/auth/user/{pat}/password/").status_code == 403

    assert not User.objects.get(pk=pat).is_superuser


def _addresses(things: dict[str, int]) -> Iterator[str]:
    for path in _walk(get_resolver()):
        if path.startswith("admin/"):
            app, _, rest = path.removeprefix("admin/").partition("/")
            label = f"{app}.{rest.partition('/')[0]}"
            yield path.replace("{}", str(things.get(label, 1)))


def _walk(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = re.sub(r"<[^>]+>|\(\?P\w*[^)]*\)|\(.*\)", "{}", str(pattern.pattern))
        text = prefix + route.removeprefix("^").removesuffix("$").replace("\\Z", "")
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern, text)
        elif isinstance(pattern, URLPattern):
            yield text
