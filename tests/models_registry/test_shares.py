"""Shares are ratios: pages say what they come to, before anything is saved."""

import pytest
from django.test import Client
from django.urls import reverse

from models_registry.admin.shares import split_between
from models_registry.models import Deployment
from tests.models_registry.factories import make_deployment, make_facts, make_model, make_version
from tests.models_registry.test_admin import form_data

PANEL = "/admin/models_registry/deployment/panel/?panel=split"


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((9, 1), ["90 %", "10 %"]),
        ((1, 0), ["100 %", "stands by"]),
        ((0, 0), ["50 %", "50 %"]),
        ((1000, 1), ["100 %", "under 1 %"]),
    ],
)
def test_what_shares_come_to(shares: tuple[int, ...], words: list[str]) -> None:
    deployments = [Deployment(share=share) for share in shares]
    stopped = Deployment(share=5, enabled=False)
    split = split_between([*deployments, stopped])
    assert [split.describe(one) for one in deployments] == words
    assert split.describe(stopped) == "\N{EN DASH}"


@pytest.mark.django_db
def test_form_and_list_tell_it(admin_client: Client) -> None:
    model = make_model()
    make_version(model, facts=make_facts())
    make_deployment(model, "first", share=3)
    second = make_deployment(model, "second", share=1)
    make_deployment(make_model("other"))
    listed = admin_client.get(reverse("admin:models_registry_deployment_changelist")).text
    for words in ("75 %", "25 %", "100 %"):
        assert words in listed

    def ask(**changes: object) -> str:
        values = form_data(admin_client, second, **changes) | {"deployment": second.pk}
        return str(admin_client.post(PANEL, values).text)

    assert "<strong>this one</strong>: 25 %" in ask()
    assert "<strong>this one</strong>: 50 %" in ask(share=3)
    assert "first <small>(share 3)</small>: 100 %" in ask(share=0)
    added = admin_client.post(PANEL, {"model": model.pk, "share": 4, "enabled": "on"})
    assert "<strong>this one</strong>: 50 %" in added.text
    assert admin_client.post("/admin/models_registry/deployment/panel/").status_code == 404
