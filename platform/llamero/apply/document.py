"""Read the file that says what there should be; each error names the file and the field."""

import re
from pathlib import Path
from typing import Any

import msgspec

from llamero.apply.mistakes import ApplyError, Mistakes
from llamero.apply.shapes import read_entry
from llamero.apply.yaml_text import read_yaml
from models_registry.names import normalize_name

MAX_FILE_BYTES = 2**20


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a version: a path, a URL with its hash, or a file of a hub's repository."""

    path: str = ""
    url: str = ""
    repository: str = ""
    file: str = ""
    revision: str = ""
    sha256: str = ""


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A model, the files of its current version, and its deployments with their settings."""

    id: str
    title: str | None = None
    kind: str | None = None
    description: str | None = None
    owned_by: str | None = None
    aliases: list[str] | None = None
    files: list[FileEntry] = []
    deployments: list[dict[str, Any]] = []


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A key, known by its name and whose it is. Its text never stands in a file."""

    name: str
    user: str | None = None
    team: str | None = None
    scopes: list[str] = []
    models: list[str] = []
    ips: list[str] = []
    enabled: bool = True
    priority: str = "normal"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a file says."""

    models: list[ModelEntry] = []
    keys: list[KeyEntry] = []


def read_document(path: Path, mistakes: Mistakes) -> Document:
    """Read and check a file as far as it goes without the database.

    What is wrong in its entries is noted; ApplyError is raised for what is no such file at all.
    """
    try:
        with path.open("rb") as opened:
            text = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ApplyError("", f"cannot be read: {error.strerror}") from error
    if len(text) > MAX_FILE_BYTES:
        raise ApplyError("", "is larger than a megabyte")
    value = read_yaml(text)
    document = read_entry({} if value is None else value, Document, "", mistakes)
    _check_names(document, mistakes)
    for index, model in enumerate(document.models):
        for number, file in enumerate(model.files):
            with mistakes.gathered():
                _check_file(file, f"models[{index}].files[{number}]")
    return document


def _check_names(document: Document, mistakes: Mistakes) -> None:
    """See that no name is there twice: of what clients send, of deployments, of keys."""
    published, deployed, keys = _Names(mistakes), _Names(mistakes), _Names(mistakes)
    for index, model in enumerate(document.models):
        place = f"models[{index}]"
        published.add(normalize_name(model.id), f"{place}.id")
        for number, alias in enumerate(model.aliases or ()):
            published.add(normalize_name(alias), f"{place}.aliases[{number}]")
        for number, deployment in enumerate(model.deployments):
            name = deployment.get("name", "")
            if not isinstance(name, str) or not name:
                words = "must be a text in quotes" if name else "is missing"
                mistakes.add(f"{place}.deployments[{number}].name", words)
            else:
                deployed.add(name, f"{place}.deployments[{number}].name")
    for index, key in enumerate(document.keys):
        if key.name:
            owner = " in ".join(one for one in (key.user, key.team) if one)
            keys.add(f"{key.name} of {owner}", f"keys[{index}].name")


class _Names:
    """Names of one kind, and where each is."""

    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._places: dict[str, str] = {}

    def add(self, name: str, place: str) -> None:
        """Note a name, or that it is there twice."""
        if not name:
            return
        first = self._places.setdefault(name, place)
        if first != place:
            self._mistakes.add(place, f"{name} is there already, at {first}")


def _check_file(file: FileEntry, place: str) -> None:
    ways = [bool(file.path), bool(file.url), bool(file.repository)]
    if sum(ways) != 1:
        raise ApplyError(place, "must have one of path, url, and repository with file")
    if file.sha256 and not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        raise ApplyError(f"{place}.sha256", "must be 64 hexadecimal digits in lower case")
    if file.url and not file.sha256:
        raise ApplyError(f"{place}.sha256", "is missing: it tells whether the file is here already")
    if file.repository and not file.file:
        raise ApplyError(f"{place}.file", "is missing")
