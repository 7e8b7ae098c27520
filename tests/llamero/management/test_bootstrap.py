"""What a first run makes, and that a second one makes nothing."""

import stat
from pathlib import Path

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command
from pytest_django.fixtures import Settings

from llamero.accounts.models import ApiKey
from llamero.supervisor.readiness import Expected

pytestmark = pytest.mark.django_db


@pytest.fixture
def home(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new home, without demo models."""
    settings.HOME = tmp_path
    monkeypatch.setenv("LLAMERO_DEMO_MODELS", "false")
    return tmp_path


def test_a_first_run_makes_an_admin_and_a_key_that_work(home: Path) -> None:
    call_command("bootstrap", report=home / "report.json")
    password = (home / "admin-password").read_text().strip()
    key = (home / "demo-api-key").read_text().strip()
    user = authenticate(username="admin", password=password)
    assert user is not None
    assert user.is_superuser
    assert ApiKey.objects.get().prefix in key
    for name in ("admin-password", "demo-api-key"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
    assert Expected.read(home / "report.json") == Expected()


def test_a_second_run_changes_nothing(home: Path) -> None:
    call_command("bootstrap")
    before = {name: (home / name).read_text() for name in ("admin-password", "demo-api-key")}
    call_command("bootstrap")
    assert {name: (home / name).read_text() for name in before} == before
    assert get_user_model().objects.count() == 1
    assert ApiKey.objects.count() == 1


def test_no_secret_is_printed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("bootstrap")
    printed = capsys.readouterr().out
    assert str(home / "demo-api-key") in printed
    for name in ("admin-password", "demo-api-key"):
        assert (home / name).read_text().strip() not in printed


def test_a_demo_key_that_was_deleted_from_disk_is_not_made_again(home: Path) -> None:
    call_command("bootstrap")
    (home / "demo-api-key").unlink()
    call_command("bootstrap")
    assert not (home / "demo-api-key").exists()
