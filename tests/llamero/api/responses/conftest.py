"""Keys and models that stored responses can belong to."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from llamero.accounts.models import ApiKey
from models_registry.models import Model


@pytest.fixture
def rows(transactional_db: None) -> None:
    """What the fake callers and models are in the database."""
    user = User.objects.create(pk=1, username="ada")
    for pk, prefix in ((1, "abcdefgh"), (2, "limitedx")):
        ApiKey.objects.create(pk=pk, user=user, name=prefix, prefix=prefix, digest=prefix, pepper=1)
    for pk, slug in enumerate(("smol", "mini", "big"), start=1):
        Model.objects.create(pk=pk, slug=slug, title=slug)


@pytest.fixture
def asked() -> dict[str, Any]:
    """A request as plain as can be."""
    return {"model": "smol", "input": "Hi"}
