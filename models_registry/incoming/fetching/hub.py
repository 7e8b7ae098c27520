"""What GGUF files a repository of the Hugging Face hub has, and where each of them is."""

import os
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from models_registry.incoming.fetching.addresses import FetchRefused

LIST_SECONDS = 15.0
MAX_FILES = 2000
_WORDS = {
    "GatedRepoError": "its owner lets only some people have it: set HF_TOKEN to a token that may",
    "RepositoryNotFoundError": "there is none of this name, or it is private and HF_TOKEN is unset",
    "RevisionNotFoundError": "it has no such revision",
    "HFValidationError": "this is no name of a repository, as owner/name",
}


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository. ``sha256`` is empty for small ones, which the hub keeps in Git."""

    name: str
    size_bytes: int
    sha256: str
    url: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at one commit, so that what is chosen is what is fetched."""

    name: str
    commit: str
    files: tuple[HubFile, ...]


def list_repository(name: str, revision: str = "") -> Repository:
    """List the GGUF files of a repository; raises FetchRefused, with words for people."""
    try:
        info = _ask(name.strip(), revision.strip())
    except Exception as error:
        raise FetchRefused(f"{name.strip()[:100]}: {_explain(error)}.") from error
    commit = str(info.sha or revision or "main")
    found = [one for one in info.siblings or () if one.rfilename.lower().endswith(".gguf")]
    files = tuple(_file(name.strip(), commit, one) for one in found[:MAX_FILES])
    return Repository(name.strip(), commit, files)


def _ask(name: str, revision: str) -> Any:
    # Read by the library when it is imported, which costs a third of a second.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import HfApi

    # False: not the token that somebody left in this user's home.
    api = HfApi(endpoint=settings.HUB_ENDPOINT, token=settings.HUB_TOKEN or False)
    return api.model_info(
        name, revision=revision or None, timeout=LIST_SECONDS, files_metadata=True
    )


def _explain(error: Exception) -> str:
    """Give words for what the library raised: a class of its own for each, found by name."""
    for kind in type(error).__mro__:
        if kind.__name__ in _WORDS:
            return _WORDS[kind.__name__]
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"the hub answers {status}" if status else "the hub cannot be reached"


def _file(repository: str, commit: str, found: Any) -> HubFile:
    from huggingface_hub import hf_hub_url

    lfs = getattr(found, "lfs", None)
    sha256 = str(getattr(lfs, "sha256", "") or "")
    url = hf_hub_url(repository, found.rfilename, revision=commit, endpoint=settings.HUB_ENDPOINT)
    return HubFile(found.rfilename, int(found.size or 0), sha256, url)
