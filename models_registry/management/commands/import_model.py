"""Import GGUF files from any path of this machine."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from inference.protocol.replicas import ModelKind
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
        try:
            version = import_model_files(
                paths=options["paths"],
                slug=options["slug"],
                title=options["title"],
                kind=ModelKind(options["kind"]) if options["kind"] else None,
                is_new_version=options["new_version"],
            )
            self.stdout.write(f"{version} is ready.")
            if options["deploy"]:
                self.stdout.write(f"Deployed {create_deployment(model=version.model)}.")
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error
