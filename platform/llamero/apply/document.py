"""Read the file that says what there should be; each error names the file and the field."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from django.core.exceptions import ValidationError

MAX_FILE_BYTES = 2**20
_PLACE = re.compile(r"(?s)(?P<words>.*) - at `\$\.?(?P<place>.*)`\Z")
Entry = TypeVar("Entry")


class ApplyError(Exception):
    """What is wrong, and where: ``place`` is a path as models[0].deployments[1].num_slots.

    ``lines`` tells each mistake apart, where several were gathered.
    """

    def __init__(self, place: str, words: str) -> None:
        line = f"{place}: {words}" if place else words
        super().__init__(line)
        self.lines = [line]


class Mistakes:
    """Gathers what is wrong, so that a file can be mended in one go."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Go on behind the block although something in it is wrong."""
        try:
            yield
        except ApplyError as error:
            self._lines += error.lines

    def tell(self) -> None:
        """Raise ApplyError with all that was gathered, if there is any."""
        if self._lines:
            error = ApplyError("", "\n".join(self._lines))
            error.lines = self._lines
            raise error


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


class _Outline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file before its entries are read: each is, and has its mistake told, for itself."""

    models: list[Any] = []
    keys: list[Any] = []


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
    outline = _convert(value or {}, _Outline, "")
    mistakes = Mistakes()
    models, keys = list[ModelEntry](), list[KeyEntry]()
    for index, one in enumerate(outline.models):
        with mistakes.gathered():
            models.append(_convert(one, ModelEntry, f"models[{index}]"))
    for index, one in enumerate(outline.keys):
        with mistakes.gathered():
            keys.append(_convert(one, KeyEntry, f"keys[{index}]"))
    mistakes.tell()
    document = Document(models=models, keys=keys)
    _check(document, mistakes)
    mistakes.tell()
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


def _convert(value: Any, kind: type[Entry], place: str) -> Entry:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = _PLACE.match(str(error))
        inner, words = (found["place"], found["words"]) if found else ("", str(error))
        dot = "." if place and inner and not inner.startswith("[") else ""
        raise ApplyError(f"{place}{dot}{inner}", words) from error


def _check(document: Document, mistakes: Mistakes) -> None:
    with mistakes.gathered():
        _check_once([model.id for model in document.models], "models", "id")
    for index, model in enumerate(document.models):
        place = f"models[{index}]"
        for number, deployment in enumerate(model.deployments):
            with mistakes.gathered():
                _check_name(deployment, f"{place}.deployments[{number}].name")
        for number, file in enumerate(model.files):
            with mistakes.gathered():
                _check_file(file, f"{place}.files[{number}]")
    found = [one.get("name") for model in document.models for one in model.deployments]
    with mistakes.gathered():
        _check_once([str(name) for name in found if name], "models[].deployments", "name")
    with mistakes.gathered():
        _check_once([f"{key.user}/{key.team}/{key.name}" for key in document.keys], "keys", "name")


def _check_name(deployment: dict[str, Any], place: str) -> None:
    if not str(deployment.get("name", "")):
        raise ApplyError(place, "is missing")


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
