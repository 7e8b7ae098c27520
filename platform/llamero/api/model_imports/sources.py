"""Which files a request asks the server to fetch."""

from typing import Any

from llamero.api.model_imports.tus import read_sha256
from llamero.errors import InvalidValue
from models_registry.incoming.sources import FetchedFile, file_at, files_of_repository

MAX_SOURCES = 64
_FIELDS = ("url", "filename", "sha256", "repository", "file", "revision")


def read_sources(value: Any) -> list[FetchedFile]:
    """Read ``sources``: URLs, and files of repositories; raises what names the wrong one.

    Repositories are asked what they have, which may take seconds.
    """
    if not isinstance(value, list) or len(value) > MAX_SOURCES:
        raise InvalidValue("sources", f"sources must be a list of at most {MAX_SOURCES}.")
    found: list[FetchedFile] = []
    for index, source in enumerate(value):
        found += _read_source(source, f"sources[{index}]")
    return found


def _read_source(source: Any, place: str) -> list[FetchedFile]:
    if not isinstance(source, dict):
        raise InvalidValue(place, f"{place} must be an object.")
    for name, value in source.items():
        if name not in _FIELDS:
            raise InvalidValue(f"{place}.{name}", f"{place}.{name} is unknown.")
        if not isinstance(value, str):
            raise InvalidValue(f"{place}.{name}", f"{place}.{name} must be a string.")
    if ("url" in source) == ("repository" in source):
        raise InvalidValue(place, f"{place} must have either url, or repository and file.")
    if "url" in source:
        sha256 = read_sha256(source.get("sha256", ""))
        return [file_at(source["url"], name=source.get("filename", ""), sha256=sha256)]
    if not source.get("file"):
        raise InvalidValue(f"{place}.file", f"{place}.file must name a file of the repository.")
    return files_of_repository(source["repository"], source["file"], source.get("revision", ""))
