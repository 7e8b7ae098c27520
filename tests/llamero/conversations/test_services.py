"""What one key has stored is bounded: the longest unused make room."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from llamero.accounts.selectors import Caller
from llamero.conversations.models import ResponseState, StoredResponse
from llamero.conversations.selectors import measure_responses
from llamero.conversations.services import end_response, keep_response
from models_registry.models import Model

pytestmark = pytest.mark.django_db


def keep(name: str, owner: str = "key:1", *, size: int = 10, is_ended: bool = True) -> None:
    user, _ = User.objects.get_or_create(username="ada")
    model, _ = Model.objects.get_or_create(slug="smol", defaults={"title": "Smol"})
    keep_response(
        response_id=name,
        caller=Caller(user, None, owner),
        model_pk=model.pk,
        previous="",
        question=b"q" * size,
        state=ResponseState.COMPLETED if is_ended else ResponseState.IN_PROGRESS,
        outcome=b"a" * size if is_ended else None,
    )


def names() -> set[str]:
    return set(StoredResponse.objects.values_list("id", flat=True))


def test_the_oldest_of_a_key_make_room(settings: Settings) -> None:
    settings.KEY_RESPONSES = 2
    keep("elsewhere", "key:2")
    for name in ("one", "two"):
        keep(name)
    StoredResponse.objects.filter(id="one").update(used_at=timezone.now() + timedelta(hours=1))
    keep("three")
    assert names() == {"elsewhere", "one", "three"}


def test_bytes_are_bounded_and_what_goes_on_stays(settings: Settings) -> None:
    settings.KEY_RESPONSE_BYTES = 100
    keep("waits", is_ended=False)
    for name in ("one", "two", "three", "four"):
        keep(name)
    assert names() == {"waits", "one", "two", "three", "four"}
    assert end_response(response_id="waits", state=ResponseState.COMPLETED, outcome=b"a" * 10)
    assert measure_responses("key:1").num_bytes == 100
    keep("five")
    assert names() == {"one", "two", "three", "four", "five"}
    keep("huge", size=1000)
    assert names() == {"huge"}
