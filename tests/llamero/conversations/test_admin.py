"""Staff see that responses are stored, and delete them; they read none."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from llamero.accounts.selectors import Caller
from llamero.conversations.models import ResponseState, StoredResponse
from llamero.conversations.packing import pack
from llamero.conversations.services import keep_response
from models_registry.models import Model

SECRET = "nobody reads this"


@pytest.fixture
def client(db: None) -> Client:
    staff = User.objects.create_superuser("staff", password="x")
    model = Model.objects.create(slug="smol", title="Smol")
    keep_response(
        response_id="resp_1",
        caller=Caller(staff, None, "user:1"),
        model_pk=model.pk,
        previous="",
        question=pack({"input": SECRET}),
        state=ResponseState.COMPLETED,
        outcome=pack({"output": SECRET}),
    )
    client = Client()
    client.force_login(staff)
    return client


def test_pages_show_no_contents(client: Client) -> None:
    listed = client.get(reverse("admin:conversations_storedresponse_changelist"))
    shown = client.get(reverse("admin:conversations_storedresponse_change", args=["resp_1"]))
    for page in (listed, shown):
        assert page.status_code == 200
        assert "Completed" in page.content.decode()
        assert SECRET not in page.content.decode()
    assert client.get(reverse("admin:conversations_storedresponse_add")).status_code == 403


def test_one_is_deleted(client: Client) -> None:
    address = reverse("admin:conversations_storedresponse_delete", args=["resp_1"])
    assert client.post(address, {"post": "yes"}).status_code == 302
    assert not StoredResponse.objects.exists()
