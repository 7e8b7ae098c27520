"""Import GGUF files from any path of this machine."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from inference.protocol.replicas import ModelKind
from models_registry.models import Model
from models_registry.names import normalize_name
from models_registry.services.deployments import create_deployment
from models_registry.services.importing import import_model_files


class Command(BaseCommand):
    """Hash, store, inspect and probe files as one version of a model, and deploy it if asked to."""

    help = "Import GGUF files (all shards of one model) and make them the current version."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Describe the command line."""
        parser.add_argument("paths", nargs="+", type=Path, help="the GGUF file, or all its shards")
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
            version = import_model_files(
                paths=options["paths"],
                slug=slug,
                title=options["title"],
                kind=ModelKind(options["kind"]) if options["kind"] else None,
                is_new_version=options["new_version"],
            )
            self.stdout.write(f"{version} is ready.")
            if options["deploy"]:
                self.stdout.write(f"Deployed {create_deployment(model=version.model)}.")
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error


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
