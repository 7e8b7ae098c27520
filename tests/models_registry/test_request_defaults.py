"""Defaults of requests are columns: judged in the form, handed on, and no reason for a restart."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from llamero.audit.models import Change
from models_registry.models import Deployment
from models_registry.models.request_defaults import REQUEST_DEFAULT_FIELDS
from models_registry.selectors import find_served_model
from tests.models_registry.factories import make_deployment, make_model, make_version
from tests.models_registry.test_admin import form_data

pytestmark = pytest.mark.django_db


def save(client: Client, deployment: Deployment, **changes: object) -> dict[str, list[str]]:
    """Save the form; gives its errors by field."""
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    page = client.post(url, form_data(client, deployment, **changes))
    return {} if page.status_code == 302 else dict(page.context["adminform"].form.errors)


def test_without_any_a_request_gets_nothing() -> None:
    model = make_model()
    make_version(model)
    make_deployment(model)
    served = find_served_model("tiny")
    assert served is not None
    assert served.request_defaults == {}


def test_those_that_are_set_are_handed_on_and_noted(admin_client: Client) -> None:
    model = make_model()
    make_version(model)
    deployment = make_deployment(model)
    changes = {
        "default_temperature": "0",
        "default_seed": "4294967294",
        "default_n_predict": "-1",
        "default_samplers": "penalties; top_k;temperature",
    }
    assert save(admin_client, deployment, **changes) == {}
    served = find_served_model("tiny")
    assert served is not None
    assert served.request_defaults == {
        "temperature": 0.0,
        "seed": 4294967294,
        "n_predict": -1,
        "samplers": ["penalties", "top_k", "temperature"],
    }
    deployment.refresh_from_db()
    assert deployment.generation == 1
    assert Change.objects.latest("pk").after["default_temperature"] == 0.0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("default_temperature", "2.5"),
        ("default_temperature", "nan"),
        ("default_temperature", "warm"),
        ("default_top_k", "1.5"),
        ("default_top_p", "-0.1"),
        ("default_seed", "-1"),
        ("default_seed", "4294967295"),
        ("default_n_predict", "0"),
        ("default_n_predict", "-2"),
        ("default_samplers", "top_k;warmth"),
        ("default_samplers", ";"),
    ],
)
def test_a_bad_value_is_an_error_of_its_field(admin_client: Client, field: str, value: str) -> None:
    assert list(save(admin_client, make_deployment(make_model()), **{field: value})) == [field]


def test_no_number_is_no_default() -> None:
    deployment = make_deployment(make_model())
    deployment.default_temperature = float("nan")
    with pytest.raises(ValidationError, match="Give a number"):
        deployment.full_clean()


def test_a_model_that_generates_nothing_has_none(admin_client: Client) -> None:
    deployment = make_deployment(make_model(kind="embedding"))
    errors = save(admin_client, deployment, default_seed="1", default_n_predict="5")
    assert sorted(errors) == ["default_n_predict", "default_seed"]


def test_the_form_has_all_of_them(admin_client: Client) -> None:
    url = reverse("admin:models_registry_deployment_add")
    page = admin_client.get(url, {"model": make_model().pk})
    assert set(REQUEST_DEFAULT_FIELDS) <= set(page.context["adminform"].form.fields)
    assert "Defaults of requests" in page.text
