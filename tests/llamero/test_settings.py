"""Settings that keep the site safe, and secrets in files."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from llamero.logs import build_logging
from llamero.secret_files import read_or_make_secret, write_secret
from tests.processes import ROOT, child_environment


@pytest.mark.django_db
def test_pages_carry_the_security_headers() -> None:
    answer = Client().get("/admin/login/")
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_celery_takes_json_alone() -> None:
    from llamero.celery import app

    assert list(app.conf.accept_content) == ["json"]
    assert app.conf.task_serializer == "json"
    assert app.conf.worker_enable_remote_control is False


@pytest.mark.parametrize(
    ("level", "expected"), [("DEBUG", "DEBUG"), ("INFO", "WARNING"), ("ERROR", "ERROR")]
)
def test_tasks_are_told_of_one_by_one_only_where_all_is(level: str, expected: str) -> None:
    assert build_logging(level)["loggers"]["celery"]["level"] == expected
    assert settings.APPEND_SLASH is False


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("LLAMERO_MAX_BODY_BYTES", "many", "is 'many', but must be a whole number."),
        ("LLAMERO_HTTPS", "maybe", "is 'maybe', but must be true or false."),
        ("LLAMERO_HOME", "/dev/null/home", "Not a directory"),
    ],
)
def test_a_value_that_is_no_good_stops_the_start_in_one_line(
    tmp_path: Path, name: str, value: str, complaint: str
) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "check"],
        env=child_environment(**{"LLAMERO_HOME": str(tmp_path), name: value}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("Llamero cannot start: ")
    assert complaint in line


def test_a_secret_that_cannot_be_kept_is_a_setting_that_is_no_good() -> None:
    with pytest.raises(ImproperlyConfigured, match="Cannot keep a secret in /dev/null/key"):
        read_or_make_secret(Path("/dev/null/key"))


def test_a_secret_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "secret-key"
    secret = read_or_make_secret(path)
    assert len(secret) > 50
    assert read_or_make_secret(path) == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_secret_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_secret(path, "one")
    write_secret(path, "two")
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
