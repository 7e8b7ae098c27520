"""What a published name may look like: the rule for slugs and aliases, in one place."""

import re
import unicodedata

from django.core.exceptions import ValidationError

MAX_NAME_LENGTH = 128
_PUBLISHED = re.compile(r"[a-z0-9][a-z0-9._:/-]*\Z")
_DEPLOYMENT = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")
_FORBIDDEN_PARTS = ("", ".", "..")


def normalize_name(text: str) -> str:
    """Fold a name to the one form that is stored: NFC, lower case, no space around it."""
    return unicodedata.normalize("NFC", text).strip().lower()


def validate_published_name(name: str) -> None:
    """Refuse a name that clients could not type, or that reads like a path out of somewhere."""
    if not _PUBLISHED.match(name) or any(part in _FORBIDDEN_PARTS for part in name.split("/")):
        raise ValidationError(
            "Use lower-case letters, digits and . _ : / - only; start with a letter or digit; "
            "no empty, '.' or '..' part between slashes.",
            code="invalid_name",
        )


def validate_deployment_name(name: str) -> None:
    """Refuse a name that could not be part of a queue name."""
    if not _DEPLOYMENT.match(name):
        raise ValidationError(
            "Use lower-case letters, digits and . _ - only; start with a letter or digit.",
            code="invalid_name",
        )


def deployment_name_for(published_name: str) -> str:
    """Derive a deployment name from a published one."""
    return re.sub(r"[^a-z0-9._-]", "-", published_name)
