"""Secrets that live in files only their owner can read."""

import os
import secrets
import tempfile
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def write_secret(path: Path, text: str) -> None:
    """Put text into a file of mode 0600, whole or not at all."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(draft).replace(path)


def read_or_make_secret(path: Path) -> str:
    """Give the secret in a file; the first process to ask makes it, all read the same one."""
    try:
        if not path.exists():
            _make_secret(path)
        return path.read_text()
    except OSError as error:
        raise ImproperlyConfigured(f"Cannot keep a secret in {path}: {error.strerror}.") from None


def _make_secret(path: Path) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(64))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
