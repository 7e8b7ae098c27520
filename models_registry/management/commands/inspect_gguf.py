"""Say whether a GGUF file could be imported, and what it is."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand

from inference.gguf.examine import inspect_files, probe_files
from inference.gguf.verdict import GgufRejected

# What memory is reckoned from, and in which order shards are read.
ONLY_FOR_PROGRAMS = {"memory", "file_order"}


class Command(BaseCommand):
    """Judge files as an import does: exit status 0 for good ones, 1 for rejected ones."""

    help = (
        "Check a model's GGUF file, or all its shards, try to load it, and show what it says of "
        "itself. Several files are taken for the shards of one model: call it for each model."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Describe the command line."""
        words = "the file of one model, or all its shards, in any order"
        parser.add_argument("paths", nargs="+", type=Path, help=words)
        parser.add_argument("--json", action="store_true", help="one line of JSON")
        parser.add_argument(
            "--no-probe", action="store_true", help="look at the header alone, load nothing"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write the verdict; end with its exit status."""
        try:
            facts = msgspec.to_builtins(inspect_files(options["paths"]))
            if not options["no_probe"]:
                ordered = [options["paths"][index] for index in facts["file_order"]]
                probe_files(ordered)
            answer = {"verdict": "ok", **facts}
        except GgufRejected as error:
            answer = {
                "verdict": "rejected",
                "code": error.code,
                "reason": error.reason,
                "byte_offset": error.byte_offset,
            }
        if options["json"]:
            self.stdout.write(json.dumps(answer))
        else:
            for name, value in answer.items():
                if name not in ONLY_FOR_PROGRAMS:
                    self.stdout.write(f"{name.replace('_', ' ')}: {_write(value)}")
        if answer["verdict"] != "ok":
            raise SystemExit(1)


def _write(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return "; ".join(map(str, value)) or "none"
        case None | "":
            return "none"
        case _:
            return str(value)
