"""Give a deployment a LoRA adapter from any path of this machine."""

import contextlib
import math
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from models_registry.management.commands.import_model import tell_by_option
from models_registry.models import Deployment
from models_registry.services.adapters import add_adapter
from models_registry.services.store import Source


def _read_scale(text: str) -> float:
    """Read a number; no limits keep out what is called none."""
    with contextlib.suppress(ValueError):
        scale = float(text)
        if math.isfinite(scale):
            return scale
    raise ArgumentTypeError(f"{text!r} is no number, such as 0.5")


class Command(BaseCommand):
    """Check, store and list an adapter; the deployment's replicas load it when they restart."""

    help = "Add a LoRA adapter (GGUF) to a deployment, for requests to choose."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Describe the command line."""
        parser.add_argument("path", type=Path, help="the adapter's GGUF file")
        parser.add_argument("--deployment", required=True, help="the deployment's name")
        parser.add_argument("--name", required=True, help="what requests call the adapter")
        parser.add_argument(
            "--scale",
            type=_read_scale,
            default=0.0,
            help="how strongly it acts where a request says nothing; without it 0: only where a "
            "request asks for it",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Add it, and say so."""
        deployment = Deployment.objects.filter(slug=options["deployment"]).first()
        if deployment is None:
            raise CommandError(f"There is no deployment {options['deployment']}.")
        try:
            adapter = add_adapter(
                deployment=deployment,
                source=Source(options["path"]),
                name=options["name"],
                scale=options["scale"],
            )
        except ValidationError as error:
            raise CommandError(tell_by_option(error)) from error
        self.stdout.write(f"{deployment} has the adapter {adapter}.")
        if not adapter.scale:
            self.stdout.write(
                "It acts only where a request asks for it: its --scale is 0. With --scale 1 it "
                "would always act."
            )
