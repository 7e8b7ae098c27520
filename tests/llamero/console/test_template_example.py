"""A chat template is shown by what it does, and does no harm."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from inference.gguf.inspect_template import TemplateFacts
from inference.gguf.verdict import GgufRejected
from llamero.console import template_example
from llamero.console.template_example import Part, compare, read_examples
from tests.models_registry.factories import make_model, make_version

SOURCE = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('No system here') }}{% endif %}"
    "{% for m in messages %}<script>[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("ab", "ab", [("same", "ab")]),
        ("ab", "axb", [("same", "a"), ("added", "x"), ("same", "b")]),
        ("axb", "ayb", [("same", "a"), ("removed", "x"), ("added", "y"), ("same", "b")]),
        ("aa", "aaa", [("same", "aa"), ("added", "a")]),
        ("", "x", [("added", "x")]),
        ("x", "", [("removed", "x")]),
    ],
)
def test_texts_are_compared(before: str, after: str, parts: list[tuple[str, str]]) -> None:
    found = compare(before, after)

    assert list(found) == [Part(kind, text) for kind, text in parts]
    assert "".join(part.text for part in found if part.kind != "added") == before
    assert "".join(part.text for part in found if part.kind != "removed") == after


@pytest.mark.django_db
def test_each_role_is_shown_and_nothing_acts(
    staff_browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_examples.cache_clear()
    facts = TemplateFacts(chat_template=SOURCE)
    monkeypatch.setattr(template_example, "read_chat_template", lambda path: facts)
    version = make_version(make_model(), facts={"has_chat_template": True})

    page = staff_browser.get(f"/console/versions/{version.pk}/template").content.decode()

    assert "<script>" not in page
    assert "&lt;script&gt;[user]What is a llama?" in page
    assert "The template refuses this: No system here" in page
    assert "<ins>&lt;script&gt;[assistant]A camelid" in page
    assert "<ins>[assistant]</ins>" in page
    assert "takes no notice" in page


@pytest.mark.django_db
def test_what_cannot_be_read_is_said_and_not_remembered(
    staff_browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object) -> TemplateFacts:
        raise GgufRejected("inspector_crashed", "Took longer than 20 seconds.")

    read_examples.cache_clear()
    monkeypatch.setattr(template_example, "read_chat_template", refuse)
    version = make_version(make_model(), facts={"has_chat_template": True})
    url = f"/console/versions/{version.pk}/template"

    assert "Took longer" in staff_browser.get(url).content.decode()
    monkeypatch.setattr(template_example, "read_chat_template", lambda path: TemplateFacts())
    assert "has no chat template" in staff_browser.get(url).content.decode()


@pytest.mark.django_db
def test_parts_of_pages_are_for_who_may_see_them(client: Client) -> None:
    version = make_version(make_model())
    user = User.objects.create_user("bob", is_staff=True)
    client.force_login(user)
    paths = {
        f"/console/versions/{version.pk}/template": "view_modelversion",
        f"/console/models/{version.model_id}/usage": "view_model",
        "/console/deployments/1/live": "view_deployment",
    }
    for path, permission in paths.items():
        assert client.get(path).status_code == 403
        user.user_permissions.add(Permission.objects.get(codename=permission))
        assert client.get(path).status_code in (200, 404)
    assert client.get(f"/console/models/{version.model_id}/usage").content == b""
