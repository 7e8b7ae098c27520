#!/usr/bin/env python
"""Run Django's commands with platform/ on the path (it is a source root, not a package)."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Hand the command line to Django."""
    # Index 1: the folder of this file stays first, so the standard library keeps its platform.
    sys.path.insert(1, str(Path(__file__).resolve().parent / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llamero.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Llamero cannot start: {error}")


if __name__ == "__main__":
    main()
