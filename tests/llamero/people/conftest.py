"""People of each role, with their browsers, and one of each thing that they meet."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from llamero.accounts.models import Team
from llamero.accounts.services import issue_api_key
from llamero.control.models import Node
from llamero.people.roles import VIEWERS, make_roles
from models_registry.models import Deployment, Model, ModelVersion


def browser_of(role: str | None, *, name: str = "sam", is_staff: bool = True) -> Client:
    """Sign in somebody of a role."""
    user = User.objects.create_user(name, password="x", is_staff=is_staff)
    if role is not None:
        user.groups.add(Group.objects.get(name=role))
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def things(db: None) -> dict[str, int]:
    """One of each thing that matters, by its label."""
    make_roles()
    owner = User.objects.create_user("pat", password="x")
    model = Model.objects.create(slug="smol", title="Smol", kind="chat")
    version = ModelVersion.objects.create(model=model, number=1, state="ready", is_current=True)
    deployment = Deployment.objects.create(slug="smol", model=model, state="ready")
    return {
        "models_registry.model": model.pk,
        "models_registry.modelversion": version.pk,
        "models_registry.deployment": deployment.pk,
        "accounts.apikey": issue_api_key(user=owner, name="test").key.pk,
        "accounts.team": Team.objects.create(name="Herd").pk,
        "auth.user": owner.pk,
        "auth.group": Group.objects.get(name=VIEWERS).pk,
        "control.node": Node.objects.create(name="one").pk,
    }
