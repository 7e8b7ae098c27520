"""What a new home needs before it serves: an admin, demo models, a demo key. Safe to repeat."""

import secrets
from pathlib import Path

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import OutputWrapper

from inference.protocol.replicas import ModelKind
from llamero.accounts.models import ApiKey
from llamero.accounts.services import issue_api_key
from llamero.secret_files import write_secret
from llamero.supervisor.home import Home
from llamero.supervisor.readiness import Expected
from models_registry.models import Model
from models_registry.selectors import list_deployment_targets

ADMIN_NAME = "admin"
DEMO_KEY_NAME = "demo"


def make_admin(home: Home) -> bool:
    """Make the first superuser, with a random password in a private file."""
    users = get_user_model()
    if users.objects.filter(is_superuser=True).exists():
        return False
    password = secrets.token_urlsafe(15)
    write_secret(home.admin_password, password + "\n")
    users.objects.create_superuser(ADMIN_NAME, "", password)
    return True


def make_demo_key(home: Home) -> bool:
    """Make the demo key, unless there ever was one."""
    owner = get_user_model().objects.filter(is_superuser=True).order_by("pk").first()
    if owner is None or ApiKey.objects.filter(name=DEMO_KEY_NAME).exists():
        return False
    issued = issue_api_key(user=owner, name=DEMO_KEY_NAME)
    write_secret(home.demo_key, issued.secret_text + "\n")
    return True


def fetch_demo_models(output: OutputWrapper) -> bool:
    """Fetch and import the demo models into a registry that is empty."""
    if Model.objects.exists():
        return False
    call_command("fetch_demo_models", stdout=output)
    return True


def write_report(path: Path) -> None:
    """Tell the supervisor which deployments to wait for."""
    wanted = [one for one in list_deployment_targets() if one.enabled and one.min_replicas]
    chat_models = [one.model for one in wanted if one.kind is ModelKind.CHAT]
    expected = Expected(
        deployments=tuple(one.deployment for one in wanted if one.files),
        chat_model=chat_models[0] if chat_models else "",
    )
    expected.write(path)
