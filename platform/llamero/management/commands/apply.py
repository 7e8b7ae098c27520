"""``manage.py apply``: bring models, deployments and keys to what a file says."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from llamero.apply.aliases import plan_additions, plan_removals
from llamero.apply.document import Document, read_document
from llamero.apply.keys import plan_key
from llamero.apply.mistakes import ApplyError, Mistakes
from llamero.apply.models import plan_model
from llamero.apply.steps import Step
from models_registry.names import normalize_name


class Command(BaseCommand):
    """Plan everything first: a file with a mistake changes nothing."""

    help = "Make models, deployments and keys as a YAML file says; a second run changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name the options."""
        parser.add_argument("file", type=Path, help="what there should be; see docs/registry.md")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done")
        parser.add_argument(
            "--keys-file",
            type=Path,
            help="a new private file for the texts of keys that are made; else they are printed",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Plan, tell, run."""
        path: Path = options["file"]
        self.keys_file: Path | None = options["keys_file"]
        try:
            mistakes = Mistakes()
            document = read_document(path, mistakes)
            steps = self._plan(document, path.resolve().parent, mistakes)
            for step in steps:
                self.stdout.write(f"{'would ' if options['dry_run'] else ''}{step.words}")
                if not options["dry_run"]:
                    step.run()
        except ApplyError as error:
            lines = [f"{path}: {line}" for line in error.lines]
            raise CommandError("\n".join(lines)) from error
        if not steps:
            self.stdout.write("everything is as the file says")

    def _plan(self, document: Document, folder: Path, mistakes: Mistakes) -> list[Step]:
        steps = plan_removals(document.models)
        for index, model in enumerate(document.models):
            with mistakes.gathered():
                steps += plan_model(model, f"models[{index}]", folder)
        with mistakes.gathered():
            steps += plan_additions(document.models)
        coming = frozenset(normalize_name(model.id) for model in document.models)
        for index, key in enumerate(document.keys):
            with mistakes.gathered():
                steps += plan_key(key, f"keys[{index}]", self._tell, coming)
        mistakes.tell()
        return steps

    def _tell(self, name: str, text: str) -> None:
        """Tell a key's text, this once."""
        line = f"{name}: {text}\n"
        if self.keys_file is None:
            self.stdout.write(f"the key {line.rstrip()}")
            return
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            with os.fdopen(os.open(self.keys_file, flags, 0o600), "w") as file:
                file.write(line)
        except OSError as error:
            # It is made by now, and would be lost.
            self.stdout.write(f"the key {line.rstrip()}")
            raise CommandError(f"{self.keys_file}: {error.strerror}; see above") from error
