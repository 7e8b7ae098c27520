"""A user, a model, and no memory of other tests' keys."""

import pytest
from django.contrib.auth.models import User

from llamero.accounts.models import Team
from llamero.accounts.uses import uses
from models_registry.models import Model


@pytest.fixture(autouse=True)
def forget_uses() -> None:
    # Of keys of other tests, which had the same ids.
    uses._waiting.clear()


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", password="analytical")


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(name="Red")


@pytest.fixture
def model(db: None) -> Model:
    return Model.objects.create(slug="smol", title="Smol")
