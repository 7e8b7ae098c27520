"""Pages and lists of the registry: complete, harmless, and as quick with many rows as with few."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from models_registry.models import Deployment, Model, ModelVersion
from models_registry.rooms import Room
from tests.models_registry.factories import make_deployment, make_facts, make_model, make_version

pytestmark = pytest.mark.django_db
GIB = 1 << 30
HOSTILE = "<img src=x onerror=alert(1)>"


def page_of(client: Client, thing: Any) -> str:
    """Open the page of a thing."""
    url = reverse(f"admin:models_registry_{thing._meta.model_name}_change", args=[thing.pk])
    answer = client.get(url)
    assert answer.status_code == 200
    return str(answer.text)


def test_a_model_is_shown_whole(admin_client: Client, rooms: list[Room]) -> None:
    rooms.append(Room("roomy", 8 * GIB, 16 * GIB))
    spare = make_model("spare")
    model = make_model(description=f"# About\n\n{HOSTILE} [x](javascript:alert(1))", fallback=spare)
    facts = make_facts(context_length=4096, architecture="llama", name=HOSTILE, num_layers=30)
    make_version(model, facts=facts | {"has_chat_template": True}, sha256="d" * 64)
    make_version(model, number=2, is_current=False)
    make_deployment(model, "a", share=3)
    make_deployment(model, "b", share=1, reason=HOSTILE)
    make_deployment(model, "c", share=0)

    page = page_of(admin_client, model)

    for part in (
        "<h1>About</h1>",
        "d" * 64,
        "4,096 tokens",
        "roomy has room",
        "75 %",
        "25 %",
        "stands by",
        "Make current",
        "/template",
        "/usage",
        ">spare</a> answers",
    ):
        assert part in page
    assert HOSTILE not in page
    assert 'href="javascript' not in page


def test_pages_without_anything_say_what_to_do(admin_client: Client) -> None:
    assert "It has no version" in page_of(admin_client, make_model())
    Model.objects.all().delete()
    for name, words in (
        ("model", "They come as GGUF files"),
        ("deployment", "No deployments yet"),
    ):
        listed = admin_client.get(reverse(f"admin:models_registry_{name}_changelist"))
        assert words in listed.text
    added = admin_client.get(reverse("admin:models_registry_deployment_add"))
    assert "Bring one first" in added.text
    assert "Nothing is served yet" in admin_client.get("/admin/").text


def test_a_new_deployment_begins_with_its_model(admin_client: Client) -> None:
    url = reverse("admin:models_registry_deployment_add")
    model = make_model("alpha")
    make_version(model)
    make_deployment(model, "alpha")
    make_model("other-one")

    chosen = admin_client.get(url)
    assert f"?model={model.pk}" in chosen.text
    assert "other-one" not in admin_client.get(url, {"q": "alp"}).text
    assert "No model is called like" in admin_client.get(url, {"q": HOSTILE}).text
    form = admin_client.get(url, {"model": model.pk}).context["adminform"].form
    assert (form.initial["slug"], form.initial["share"]) == ("alpha-2", 0)


@pytest.mark.parametrize("name", ["model", "modelversion", "deployment", "modelfile"])
def test_lists_cost_the_same_whatever_is_in_them(
    admin_client: Client, django_assert_max_num_queries: Any, name: str
) -> None:
    models = Model.objects.bulk_create(
        Model(slug=f"m{number}", title=f"Model {number}") for number in range(120)
    )
    ModelVersion.objects.bulk_create(
        ModelVersion(model=one, number=1, state="ready", is_current=True, facts=make_facts())
        # Some have none.
        for one in models[::2]
    )
    Deployment.objects.bulk_create(Deployment(model=one, slug=one.slug) for one in models)
    url = reverse(f"admin:models_registry_{name}_changelist")
    with django_assert_max_num_queries(11):
        assert admin_client.get(url).status_code == 200
    with django_assert_max_num_queries(13):
        assert admin_client.get(url, {"q": "m11"}).status_code == 200


def test_a_form_lists_no_thousands(admin_client: Client) -> None:
    first, second = make_model("offered-one"), make_model("other-one")
    make_version(first)
    make_version(second, number=7)
    deployment = make_deployment(first)

    pages = (
        admin_client.get(reverse("admin:models_registry_deployment_add"), {"model": first.pk}).text,
        page_of(admin_client, deployment),
    )

    assert all("offered-one v1" in page and "other-one" not in page for page in pages)
    url = reverse("admin:autocomplete")
    asked = {"app_label": "models_registry", "model_name": "deployment", "term": "o"}
    found = admin_client.get(url, asked | {"field_name": "draft_version"}).json()["results"]
    assert {one["text"] for one in found} == {"offered-one v1", "other-one v7"}
    ModelVersion.objects.filter(number=7).update(state="rejected", reason="x", is_current=False)
    found = admin_client.get(url, asked | {"field_name": "draft_version"}).json()["results"]
    assert {one["text"] for one in found} == {"offered-one v1"}


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("model", {"version": "none"}),
        ("model", {"version": "bad"}),
        ("model", {"deployed": "no"}),
        ("model", {"deployed": "odd"}),
        ("deployment", {"attention": "bad"}),
        ("deployment", {"attention": "error"}),
        ("deployment", {"attention": "drain"}),
        ("modelversion", {"model__id__exact": "1"}),
    ],
)
def test_filters_work(admin_client: Client, name: str, query: dict[str, str]) -> None:
    make_deployment(make_model())
    url = reverse(f"admin:models_registry_{name}_changelist")
    assert admin_client.get(url, query).status_code == 200
