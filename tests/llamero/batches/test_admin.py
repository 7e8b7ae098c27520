"""Staff see how far batches are, and cancel them."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from llamero.batches.models import Batch, BatchState, StoredFile


@pytest.fixture
def client(db: None) -> Client:
    now = timezone.now()
    for number, state in enumerate((BatchState.IN_PROGRESS, BatchState.COMPLETED)):
        Batch.objects.create(
            id=f"batch_{number}",
            owner="key:1",
            endpoint="/v1/chat/completions",
            state=state,
            num_total=8,
            num_completed=2,
            expires_at=now,
        )
    StoredFile.objects.create(id="file-1", owner="key:1", num_bytes=2048, expires_at=now)
    client = Client()
    client.force_login(User.objects.create_superuser("staff", password="x"))
    return client


def test_pages_show_progress(client: Client) -> None:
    listed = client.get(reverse("admin:batches_batch_changelist"))
    assert "2 of 8 (25 %)" in listed.content.decode()
    shown = client.get(reverse("admin:batches_batch_change", args=["batch_0"]))
    assert "In progress" in shown.content.decode()
    assert client.get(reverse("admin:batches_batch_add")).status_code == 403
    files = client.get(reverse("admin:batches_storedfile_changelist"))
    assert "2.0" in files.content.decode()


def test_open_batches_are_cancelled(client: Client) -> None:
    chosen = {"action": "cancel", "_selected_action": ["batch_0", "batch_1"]}
    answer = client.post(reverse("admin:batches_batch_changelist"), chosen, follow=True)
    assert "1 batch cancelled" in answer.content.decode()
    states = list(Batch.objects.order_by("id").values_list("state", flat=True))
    assert states == [BatchState.CANCELLING, BatchState.COMPLETED]
