"""The audit log: who, what, before and after, by whatever way; and nothing secret."""

import json
import sys

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client

from llamero.accounts.models import ApiKey
from llamero.accounts.services import issue_api_key, revoke_api_keys, rotate_api_key
from llamero.audit.actors import Actor, current_actor
from llamero.audit.models import Change, Source
from llamero.audit.watched import UNWATCHED, WATCHED
from models_registry.behalf import working_for
from models_registry.models import Deployment, Model, ModelVersion
from models_registry.services.deployments import drain_deployments, restart_deployments
from models_registry.services.versions import make_current

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """A superuser."""
    return User.objects.create_superuser("ada", password="x")


@pytest.fixture
def browser(admin_user: User) -> Client:
    """Their browser."""
    client = Client()
    client.force_login(admin_user)
    return client


def last(kind: str) -> Change:
    """Give the last change of a kind of thing."""
    return Change.objects.filter(kind=kind).latest("pk")


def make_model() -> Model:
    """Make a model."""
    return Model.objects.create(slug="smol", title="Smol", kind="chat")


def test_a_change_in_the_admin_is_logged_with_before_and_after(
    browser: Client, admin_user: User
) -> None:
    group = Group.objects.create(name="Old")
    browser.post(f"/admin/auth/group/{group.pk}/change/", {"name": "New"})

    change = last("auth.group")

    assert (change.actor, change.actor_name, change.source) == (admin_user, "ada", "page")
    assert change.address == "127.0.0.1"
    assert (change.action, change.object_id) == ("changed", str(group.pk))
    assert (change.before, change.after) == ({"name": "Old"}, {"name": "New"})


def test_what_is_made_and_deleted_is_logged() -> None:
    model = make_model()
    pk = model.pk
    assert last("models_registry.model").after["slug"] == "smol"

    model.delete()

    change = last("models_registry.model")
    assert (change.action, change.object_id, change.before["slug"]) == ("deleted", str(pk), "smol")
    assert change.after == {}


def test_changes_without_a_save_are_logged(admin_user: User) -> None:
    key = issue_api_key(user=admin_user, name="test").key
    revoke_api_keys(keys=[key])
    assert last("accounts.apikey").after["revoked_at"]
    model = make_model()
    first = ModelVersion.objects.create(model=model, number=1, state="ready", is_current=True)
    second = ModelVersion.objects.create(model=model, number=2, state="ready")
    Deployment.objects.create(slug="smol", model=model, enabled=True)

    make_current(version=second)
    changed = Change.objects.filter(kind="models_registry.modelversion", action="changed")
    assert {one.object_id for one in changed} == {str(first.pk), str(second.pk)}
    drain_deployments(deployments=Deployment.objects.all())
    assert last("models_registry.deployment").after == {"is_draining": True}
    restart_deployments(deployments=Deployment.objects.all())
    assert "generation" in last("models_registry.deployment").after


def test_what_the_program_keeps_for_itself_is_not_logged(admin_user: User) -> None:
    deployment = Deployment.objects.create(slug="smol", model=make_model())
    before = Change.objects.count()

    deployment.state = "failed"
    deployment.save()
    admin_user.save()
    Client().force_login(admin_user)

    assert Change.objects.count() == before


def test_relations_are_logged(admin_user: User) -> None:
    group = Group.objects.create(name="Shearers")

    admin_user.groups.add(group)

    change = last("auth.user")
    assert (change.before, change.after) == ({"groups": []}, {"groups": ["Shearers"]})


def test_no_secret_is_in_the_log(admin_user: User) -> None:
    issued = issue_api_key(user=admin_user, name="test")
    first = str(ApiKey.objects.get(pk=issued.key.pk).digest)
    again = rotate_api_key(key=issued.key, grace=issued.key.created_at - issued.key.created_at)
    admin_user.set_password("open sesame")
    admin_user.save()

    text = json.dumps(list(Change.objects.values("before", "after", "object_text", "actor_name")))

    assert last("auth.user").after == {"password": "(hidden)"}
    for secret in (issued.secret_text, again.secret_text, first, admin_user.password):
        assert secret not in text
        assert secret[-20:] not in text


def test_a_command_is_logged_with_who_ran_it(
    admin_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["manage.py", "create_api_key", "--name", "x"])
    call_command("create_api_key", name="x", user="ada")

    change = last("accounts.apikey")

    assert (change.source, change.actor) == (Source.COMMAND, None)
    assert change.actor_name.endswith(" by create_api_key")


@pytest.mark.parametrize("arguments", [["manage.py", "control"], ["pytest"], ["celery", "worker"]])
def test_what_serves_is_the_program_itself(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)

    assert current_actor() == Actor(Source.PROGRAM)


def test_what_an_import_makes_is_by_whoever_asked_for_it(admin_user: User) -> None:
    with working_for(f"user:{admin_user.pk}"):
        make_model()
    change = last("models_registry.model")
    assert (change.source, change.actor) == (Source.PROGRAM, admin_user)
    assert change.actor_name == "ada, by way of an import"
    with working_for("key:7"):
        assert current_actor() == Actor(Source.PROGRAM, "key 7, by way of an import")
    with working_for("operator"):
        assert current_actor() == Actor(Source.PROGRAM)


def test_a_new_thing_tells_what_is_not_as_for_all() -> None:
    Deployment.objects.create(slug="smol", model=make_model(), num_slots=3)
    assert set(last("models_registry.deployment").after) == {"slug", "model", "num_slots"}


def test_a_name_outlives_its_user() -> None:
    user = User.objects.create_superuser("temp", password="x")
    browser = Client()
    browser.force_login(user)
    browser.post("/admin/auth/group/add/", {"name": "New"})
    user.delete()

    change = last("auth.group")

    assert (change.actor, change.actor_name) == (None, "temp")


def test_the_log_is_written_once() -> None:
    make_model()

    with pytest.raises(TypeError):
        last("models_registry.model").save()


def test_everything_staff_can_meet_is_watched_or_left_out_on_purpose() -> None:
    from django.contrib import admin

    labels = {model._meta.label for model in admin.site._registry}

    assert labels - set(WATCHED) - UNWATCHED == set()


def test_the_log_is_read_in_the_admin_and_not_changed(browser: Client) -> None:
    model = make_model()
    Model.objects.filter(pk=model.pk).get().delete()
    change = last("models_registry.model")
    base = "/admin/audit/change/"

    page = browser.get(f"{base}{change.pk}/change/").content.decode()
    assert "<td>smol</td>" in page
    assert "models_registry.model" not in page
    assert "_save" not in page
    listed = browser.get(f"{base}?q=smol&action=deleted").content.decode()
    assert f"{base}{change.pk}/change/" in listed
    assert f"{base}{change.pk}/change/" in browser.get(f"{base}?kind=models_registry.model").text
    assert "API key" in browser.get(base).text
    unlisted = browser.get(f"{base}?q=nothing-like-it").content.decode()
    assert f"{base}{change.pk}/change/" not in unlisted
    assert browser.get(f"{base}add/").status_code == 403
    assert browser.post(f"{base}{change.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_long_log_takes_few_queries(
    browser: Client, django_assert_max_num_queries: object
) -> None:
    Change.objects.bulk_create(
        Change(action="changed", source="page", kind="auth.user", object_id=str(n), object_text="x")
        for n in range(200)
    )

    with django_assert_max_num_queries(16):  # type: ignore[operator]
        assert browser.get("/admin/audit/change/").status_code == 200
