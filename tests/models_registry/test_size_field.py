"""Sizes are typed and shown with units."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from models_registry.admin.size_field import SizeField
from tests.models_registry.factories import make_deployment, make_model
from tests.models_registry.test_admin import form_data


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [("0", 0), ("5", 5), ("256 MiB", 256 << 20), ("1.5g", 3 << 29), ("2 GB", 2 * 10**9)],
)
def test_units_are_understood(text: str, num_bytes: int) -> None:
    assert SizeField().clean(text) == num_bytes


@pytest.mark.parametrize("text", ["", "much", "-1", "1 XB", "1e3", "nan", "1 2", "9" * 400])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        SizeField(min_value=0).clean(text)


@pytest.mark.parametrize("num_bytes", [0, 7, 1 << 20, 3 << 29, 1000, 5 << 40])
def test_what_is_shown_reads_back(num_bytes: int) -> None:
    field = SizeField()
    assert field.clean(field.prepare_value(num_bytes)) == num_bytes


@pytest.mark.django_db
def test_a_deployment_takes_sizes_with_units(admin_client: Client) -> None:
    deployment = make_deployment(make_model())
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    assert 'value="256 MiB"' in admin_client.get(url).text
    admin_client.post(url, form_data(admin_client, deployment, prefix_disk_bytes="2 GiB"))
    deployment.refresh_from_db()
    assert deployment.prefix_disk_bytes == 2 << 30
    page = admin_client.post(url, form_data(admin_client, deployment, prefix_disk_bytes="-1"))
    assert "prefix_disk_bytes" in page.context["adminform"].form.errors
