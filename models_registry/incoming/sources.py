"""Files that are to be fetched: from URLs, or from repositories of the hub."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from django.db import transaction

from models_registry.incoming.fetching.addresses import FetchRefused, read_url
from models_registry.incoming.fetching.hub import HubFile, Repository, list_repository
from models_registry.incoming.receiving import begin_upload, check_takes_files
from models_registry.models import ModelImport, Upload
from models_registry.names import display_text, shard_names


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file to be fetched. ``size_bytes`` is None where only its server knows."""

    url: str
    name: str
    sha256: str = ""
    size_bytes: int | None = None


def file_at(url: str, *, name: str = "", sha256: str = "") -> FetchedFile:
    """Give the file at a URL, called as its path ends; raises FetchRefused for a bad one."""
    url = url.strip()
    read_url(url)
    last = unquote(urlsplit(url).path).rpartition("/")[2]
    return FetchedFile(url, name or last or "model.gguf", sha256)


def files_of_repository(repository: str, name: str, revision: str = "") -> list[FetchedFile]:
    """Give a file of a repository, with all other shards of its set; raises FetchRefused."""
    return choose_files(list_repository(repository, revision), [name])


def choose_files(repository: Repository, names: Sequence[str]) -> list[FetchedFile]:
    """Give files of a repository by their names, with all shards of their sets."""
    known = {file.name: file for file in repository.files}
    wanted: dict[str, HubFile] = {}
    for name in names:
        for one in shard_names(name):
            if one not in known:
                raise FetchRefused(f"{repository.name} has no file {one[:200]}.")
            wanted[one] = known[one]
    return [
        FetchedFile(file.url, file.name.rpartition("/")[2], file.sha256, file.size_bytes)
        for file in wanted.values()
    ]


def add_fetched_files(
    model_import: ModelImport, files: Sequence[FetchedFile], *, sees_files: bool = False
) -> list[Upload]:
    """Add files to an import; those that are here already are complete at once.

    That goes for whom ``begin_upload`` says. Raises UploadRefused where one has no room, and adds
    none then.
    """
    with transaction.atomic():
        return [_add(model_import, file, sees_files=sees_files) for file in files]


def _add(model_import: ModelImport, file: FetchedFile, *, sees_files: bool) -> Upload:
    if file.size_bytes is not None:
        return begin_upload(
            model_import=model_import,
            name=file.name,
            size_bytes=file.size_bytes,
            sha256=file.sha256,
            source_url=file.url,
            sees_files=sees_files,
        )
    check_takes_files(model_import)
    return Upload.objects.create(
        model_import=model_import,
        display_name=display_text(file.name),
        sha256=file.sha256,
        source_url=file.url,
    )
