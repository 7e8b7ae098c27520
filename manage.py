#!/usr/bin/env python
"""Run Django's commands with platform/ on the path (it is a source root, not a package)."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Hand the command line to Django."""
    # Index 1: the folder of this file stays first, and the standard library's platform stays visible.
    sys.path.insert(1, str(Path(__file__).resolve().parent / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llamero.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
