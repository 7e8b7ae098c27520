"""Read the file that says what there should be; each error names the file and the field."""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from django.core.exceptions import ValidationError

MAX_FILE_BYTES = 2**20
_PLACE = re.compile(r"(?s)(?P<words>.*) - at `\$\.?(?P<place>.*)`\Z")
Entry = TypeVar("Entry")


class ApplyError(Exception):
    """What is wrong, and where: ``place`` is a path as models[0].deployments[1].num_slots."""

    def __init__(self, place: str, words: str) -> None:
        super().__init__(f"{place}: {words}" if place else words)


class FileEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a version: a path, a URL with its hash, or a file of a hub's repository."""

    path: str = ""
    url: str = ""
    repository: str = ""
    file: str = ""
    revision: str = ""
    sha256: str = ""


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model, the files of its current version, and its deployments with their settings."""

    id: str
    title: str | None = None
    kind: str | None = None
    description: str | None = None
    owned_by: str | None = None
    aliases: list[str] | None = None
    files: list[FileEntry] = []
    deployments: list[dict[str, Any]] = []


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key, known by its name and whose it is. Its text never stands in a file."""

    name: str
    user: str | None = None
    team: str | None = None
    scopes: list[str] = []
    models: list[str] = []
    ips: list[str] = []
    enabled: bool = True


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a file says."""

    models: list[ModelEntry] = []
    keys: list[KeyEntry] = []


def read_document(path: Path) -> Document:
    """Read and check a file as far as it goes without the database; raises ApplyError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ApplyError("", f"cannot be read: {error.strerror}") from error
    if len(text) > MAX_FILE_BYTES:
        raise ApplyError("", "is larger than a megabyte")
    try:
        value = yaml.load(text, _StrictLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ApplyError("", f"is no YAML: {' '.join(str(error).split())}") from error
    try:
        document = msgspec.convert(value or {}, Document)
    except msgspec.ValidationError as error:
        found = _PLACE.match(str(error))
        place, words = (found["place"], found["words"]) if found else ("", str(error))
        raise ApplyError(place, words) from error
    _check(document)
    return document


def place_of(error: ValidationError, place: str) -> ApplyError:
    """Say where a value is wrong that Django has judged."""
    if not hasattr(error, "error_dict"):
        return ApplyError(place, " ".join(error.messages))
    name, messages = next(iter(error.message_dict.items()))
    inner = "" if name == "__all__" else f".{name}"
    return ApplyError(f"{place}{inner}", " ".join(messages))


class _StrictLoader(yaml.SafeLoader):
    """Plain values alone, and no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make a mapping."""
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key in seen:
                place = key_node.start_mark
                raise yaml.MarkedYAMLError(problem=f"{key} is there twice", problem_mark=place)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _check(document: Document) -> None:
    _check_once([model.id for model in document.models], "models", "id")
    for index, model in enumerate(document.models):
        place = f"models[{index}]"
        names = [str(one.get("name", "")) for one in model.deployments]
        if not all(names):
            number = names.index("")
            raise ApplyError(f"{place}.deployments[{number}].name", "is missing")
        for number, file in enumerate(model.files):
            _check_file(file, f"{place}.files[{number}]")
    deployments = [str(one["name"]) for model in document.models for one in model.deployments]
    _check_once(deployments, "models[].deployments", "name")
    _check_once([f"{key.user}/{key.team}/{key.name}" for key in document.keys], "keys", "name")


def _check_once(names: list[str], place: str, field: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ApplyError(f"{place}[{index}].{field}", f"{name} is there twice")


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
