"""Import GGUF files from any path of this machine, from URLs, or from the Hugging Face hub."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from inference.protocol.replicas import ModelKind
from models_registry.incoming.commands import import_by_command
from models_registry.incoming.fetching.addresses import FetchRefused
from models_registry.incoming.room import OPERATOR
from models_registry.incoming.sources import FetchedFile, file_at, files_of_repository
from models_registry.models import Model, ModelVersion, Upload
from models_registry.names import normalize_name
from models_registry.services.deployments import create_deployment
from models_registry.services.importing import import_model_files

_HUB = "hf://"
_PROGRESS_SECONDS = 2.0
# What the fields of models and wishes are called here.
_OPTIONS = {name: name for name in ("slug", "title", "kind", "name", "scale")} | {"model": "slug"}


class Command(BaseCommand):
    """Hash, store, inspect and probe files as one version of a model, and deploy it if asked to."""

    help = "Import GGUF files (all shards of one model) and make them the current version."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Describe the command line."""
        parser.add_argument(
            "sources",
            nargs="+",
            type=str,
            help="the GGUF file or all its shards: paths, https:// URLs, or "
            "hf://owner/name/file.gguf, perhaps with @revision behind the name",
        )
        parser.add_argument("--slug", required=True, help="the id that clients send as “model”")
        parser.add_argument("--title", default="", help="how people call it")
        parser.add_argument("--kind", choices=[kind.value for kind in ModelKind], default=None)
        parser.add_argument("--new-version", action="store_true", help="add to an existing model")
        parser.add_argument("--deploy", action="store_true", help="create a deployment as well")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import, and say what came of it."""
        slug = normalize_name(options["slug"])
        _check_slug(slug, is_new_version=options["new_version"])
        try:
            version = self._import(slug, options)
            self.stdout.write(f"{version} is ready.")
            if options["deploy"] and version is not None:
                self.stdout.write(f"Deployed {create_deployment(model=version.model)}.")
        except FetchRefused as error:
            raise CommandError(str(error)) from error
        except ValidationError as error:
            raise CommandError(tell_by_option(error)) from error

    def _import(self, slug: str, options: dict[str, Any]) -> ModelVersion | None:
        """Import what lies here as ever; where anything is fetched, all goes that road."""
        sources = [str(source) for source in options["sources"]]
        paths = [Path(source) for source in sources if not _is_elsewhere(source)]
        if len(paths) == len(sources):
            return import_model_files(
                paths=paths,
                slug=slug,
                title=options["title"],
                kind=ModelKind(options["kind"]) if options["kind"] else None,
                is_new_version=options["new_version"],
            )
        self._told_at = time.monotonic()
        return import_by_command(
            owner=OPERATOR,
            paths=[(path, "") for path in paths],
            fetched=[file for source in sources for file in _find_files(source)],
            wish={
                "model": slug,
                "title": options["title"],
                "kind": options["kind"] or "",
                "is_new_version": options["new_version"],
            },
            tell=self._tell,
        )

    def _tell(self, upload: Upload, received: int) -> None:
        """Say now and then how far a file is."""
        now = time.monotonic()
        if now - self._told_at < _PROGRESS_SECONDS:
            return
        self._told_at = now
        share = 100 * received // (upload.size_bytes or 1)
        self.stdout.write(f"{upload}: {share} %, {received} of {upload.size_bytes} bytes")


def tell_by_option(error: ValidationError) -> str:
    """Say what is wrong, behind the option that gave it."""
    if not hasattr(error, "error_dict"):
        return "\n".join(error.messages)
    options = {name: f"--{_OPTIONS[name]}: " for name in error.error_dict if name in _OPTIONS}
    return "\n".join(
        f"{options.get(name, '')}{message}"
        for name, messages in error.message_dict.items()
        for message in messages
    )


def _check_slug(slug: str, *, is_new_version: bool) -> None:
    """Say which option to change where the name and --new-version do not go together."""
    is_known = Model.objects.filter(slug=slug).exists()
    if is_known and not is_new_version:
        raise CommandError(
            f"A model {slug} already exists: choose another --slug, or add the file to it as a "
            "version with --new-version."
        )
    if is_new_version and not is_known:
        raise CommandError(f"There is no model {slug}: --new-version is for one that exists.")


def _is_elsewhere(source: str) -> bool:
    # Another scheme is told what it should be.
    return "://" in source


def _find_files(source: str) -> list[FetchedFile]:
    """Give the files that a source names; of a hub's split model any shard names all."""
    if not _is_elsewhere(source):
        return []
    if not source.startswith(_HUB):
        return [file_at(source)]
    owner, _, rest = source.removeprefix(_HUB).partition("/")
    name, _, file = rest.partition("/")
    name, _, revision = name.partition("@")
    if not file:
        raise FetchRefused(f"{source}: name a file of the repository, as hf://owner/name/file.gguf")
    return files_of_repository(f"{owner}/{name}", file, revision)
