"""A user in a team, and a model."""

import pytest
from django.contrib.auth.models import User

from llamero.accounts.callers import Caller
from llamero.accounts.models import ApiKey, Membership, Team
from llamero.accounts.services import issue_api_key
from models_registry.models import Model


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", password="analytical")


@pytest.fixture
def team(ada: User) -> Team:
    team = Team.objects.create(name="Red")
    Membership.objects.create(team=team, user=ada)
    return team


@pytest.fixture
def model(db: None) -> Model:
    return Model.objects.create(slug="smol", title="Smol")


@pytest.fixture
def key(ada: User, team: Team) -> ApiKey:
    return issue_api_key(name="ci", user=ada, team=team).key


@pytest.fixture
def caller(key: ApiKey) -> Caller:
    return Caller(user=key.user, key_id=key.pk, owner=f"key:{key.pk}", team_id=key.team_id)
