"""A whole request against the database: found, used, revoked."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from llamero.accounts.selectors import recent_callers
from llamero.accounts.services import issue_api_key, revoke_api_keys
from tests.llamero.api.asgi_client import get


@pytest.mark.django_db(transaction=True)
async def test_a_revoked_key_is_401() -> None:
    user = await User.objects.acreate(username="ada")
    issued = await sync_to_async(issue_api_key)(user=user, name="laptop")
    answer = await get("/v1/models", key=issued.secret_text)
    assert (answer.status, answer.json()["data"]) == (200, [])
    await sync_to_async(revoke_api_keys)(keys=[issued.key])
    recent_callers.clear()
    answer = await get("/v1/models", key=issued.secret_text)
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
