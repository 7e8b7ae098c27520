"""Which files a version is to have, and how they come when it has not."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ValidationError

from inference.gguf.verdict import GgufRejected
from llamero.apply.document import FileEntry
from llamero.apply.mistakes import ApplyError, Mistakes
from models_registry.incoming.commands import import_by_command
from models_registry.incoming.fetching.addresses import FetchRefused
from models_registry.incoming.room import OPERATOR
from models_registry.incoming.sources import FetchedFile, file_at, files_of_repository
from models_registry.models import FileRole, Model, ModelVersion, VersionState
from models_registry.services.store import hash_open_file


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file with its hash; it lies at ``path``, or is to be fetched."""

    sha256: str
    path: Path | None = None
    fetched: FetchedFile | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        return self.path.name if self.path else self.fetched.name if self.fetched else ""


def find_wanted(files: Sequence[FileEntry], folder: Path, place: str) -> list[WantedFile]:
    """Find out what the files of an entry are; raises ApplyError. Paths start at ``folder``."""
    wanted: list[WantedFile] = []
    mistakes = Mistakes()
    for index, file in enumerate(files):
        with mistakes.gathered():
            wanted += _find(file, folder, f"{place}[{index}]")
    mistakes.tell()
    return wanted


def find_version(model: Model, wanted: Sequence[WantedFile]) -> ModelVersion | None:
    """Find the newest version that has exactly these files and can be served."""
    hashes = sorted(file.sha256 for file in wanted)
    for version in model.versions.filter(state=VersionState.READY).order_by("-number"):
        uses = version.files.exclude(role=FileRole.LORA).values_list("file__sha256", flat=True)
        if sorted(uses) == hashes:
            return version
    return None


def import_wanted(wanted: Sequence[WantedFile], wish: dict[str, object], place: str) -> None:
    """Bring the files in, by the import that everybody uses; raises ApplyError."""
    try:
        import_by_command(
            owner=OPERATOR,
            paths=[(file.path, file.sha256) for file in wanted if file.path],
            fetched=[file.fetched for file in wanted if file.fetched],
            wish=wish,
        )
    except ValidationError as error:
        raise ApplyError(place, " ".join(error.messages)) from error


def _find(file: FileEntry, folder: Path, place: str) -> list[WantedFile]:
    try:
        return _look_at(file, folder)
    except (FetchRefused, GgufRejected, OSError, RuntimeError) as error:
        words = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        field = "path" if file.path else "url" if file.url else "repository"
        raise ApplyError(f"{place}.{field}", str(words)) from error


def _look_at(file: FileEntry, folder: Path) -> list[WantedFile]:
    if file.path:
        path = folder / Path(file.path).expanduser()
        sha256 = hash_open_file(path)
        if file.sha256 and file.sha256 != sha256:
            raise FetchRefused(f"has the SHA-256 {sha256}")
        return [WantedFile(sha256, path=path)]
    if file.url:
        return [WantedFile(file.sha256, fetched=file_at(file.url, sha256=file.sha256))]
    found = files_of_repository(file.repository, file.file, file.revision)
    if any(not one.sha256 for one in found):
        raise FetchRefused(f"the hub tells no hash of {file.file}")
    if file.sha256 and [one.sha256 for one in found] != [file.sha256]:
        raise FetchRefused(f"{file.file} has the SHA-256 {found[0].sha256}")
    return [WantedFile(one.sha256, fetched=one) for one in found]
