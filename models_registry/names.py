"""What a published name may look like: the rule for slugs and aliases, in one place."""

import re
import unicodedata

from django.core.exceptions import ValidationError

MAX_NAME_LENGTH = 128
MAX_DISPLAY_LENGTH = 255
_PUBLISHED = re.compile(r"[a-z0-9][a-z0-9._:/-]*\Z")
_DEPLOYMENT = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf\Z")
_FORBIDDEN_PARTS = ("", ".", "..")


def normalize_name(text: str) -> str:
    """Fold a name to the one form that is stored: NFC, lower case, no space around it."""
    return unicodedata.normalize("NFC", text).strip().lower()


def may_be_published(name: str) -> bool:
    """Tell whether a model may have such a name; any other needs not be looked for.

    So what is no name, such as a key that a client put in the wrong place, gets into no query.
    """
    return len(name) <= MAX_NAME_LENGTH and _is_well_formed(name)


def validate_published_name(name: str) -> None:
    """Refuse a name that clients could not type, or that reads like a path out of somewhere."""
    if not _is_well_formed(name):
        raise ValidationError(
            "Use lower-case letters, digits and . _ : / - only; start with a letter or digit; "
            "no empty, '.' or '..' part between slashes.",
            code="invalid_name",
        )


def _is_well_formed(name: str) -> bool:
    parts = name.split("/")
    return _PUBLISHED.match(name) is not None and not any(
        part in _FORBIDDEN_PARTS for part in parts
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


def adapter_name_for(file_name: str) -> str:
    """Derive what requests call an adapter from the name of its file."""
    stem = file_name.lower().removesuffix(".gguf")
    name = re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._")
    return name[:MAX_NAME_LENGTH] or "adapter"


def display_text(file_name: str) -> str:
    """Give a file's name as harmless text for people: no folders, no controls, no tricks."""
    last = re.split(r"[/\\]", file_name)[-1]
    return "".join(one if one.isprintable() else "\ufffd" for one in last)[:MAX_DISPLAY_LENGTH]


def shown_url(url: str) -> str:
    """Give a URL without what may let anybody in who knows it: a password, or a signed query."""
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    return re.sub(r"//[^/]*@", "//", bare)


def shard_names(name: str) -> list[str]:
    """Give the names of all shards of the set that a name belongs to; else the name alone."""
    match = _SHARD.match(name)
    if match is None:
        return [name]
    count = int(match["count"])
    return [f"{match['stem']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
