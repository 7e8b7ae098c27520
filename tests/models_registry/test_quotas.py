"""Upload quotas of single users are given in the admin, with units."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from models_registry.models import ModelFile, UploadQuota

PAGE = "/admin/models_registry/uploadquota/"


@pytest.mark.django_db
def test_a_quota_is_given_shown_and_changed(admin_client: Client) -> None:
    user = User.objects.create_user("ada")
    ModelFile.objects.create(sha256="a" * 64, size_bytes=3 * 2**30, owner=f"user:{user.pk}")
    admin_client.post(f"{PAGE}add/", {"user": user.pk, "max_bytes": "200 GiB"})
    quota = UploadQuota.objects.get(user=user)
    assert quota.max_bytes == 200 * 2**30
    assert "200.0\N{NO-BREAK SPACE}GiB" in admin_client.get(PAGE).text
    page = admin_client.get(f"{PAGE}{quota.pk}/change/").text
    assert 'value="200 GiB"' in page
    assert "3.0\N{NO-BREAK SPACE}GiB" in page
    admin_client.post(f"{PAGE}{quota.pk}/change/", {"max_bytes": "0"})
    quota.refresh_from_db()
    assert (quota.user, quota.max_bytes) == (user, 0)
    assert "any amount" in admin_client.get(PAGE).text
