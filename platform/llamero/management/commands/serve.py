"""``manage.py serve``: one gateway process."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

# The event loop takes its turn after so long, however many threads validate requests: at Python's
# 5 ms each of its waits would cost it 40 ms beside eight of them.
_SWITCH_SECONDS = 0.0002


class Command(BaseCommand):
    """Serve HTTP and WebSockets."""

    help = "Run one gateway process: Daphne with body, header and time limits."
    # Checks take a second of each start; make lint runs them.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the address from the command line or the environment."""
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=int, default=os.environ.get("PORT") or 8000)

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until told to stop."""
        # Daphne's server goes first: it chooses Twisted's reactor.
        from llamero.serve.server import ServeOptions, serve  # isort: skip
        from llamero.api.run import fail_open_runs, has_open_runs  # isort: skip
        from llamero.asgi import application  # isort: skip
        from llamero.dispatch import stop_waiting  # isort: skip
        from llamero.batches.store import incoming_folder  # isort: skip

        def say_goodbye() -> None:
            stop_waiting()
            fail_open_runs()

        sys.setswitchinterval(_SWITCH_SECONDS)
        serve(
            application,
            ServeOptions(
                host=options["host"],
                port=options["port"],
                max_body_bytes=settings.MAX_BODY_BYTES,
                # A form has a little more than the file in it.
                max_upload_bytes=settings.MAX_FILE_BYTES + 2**16,
                max_chunk_bytes=settings.MAX_CHUNK_BYTES,
                upload_folder=str(incoming_folder()),
                arrival_seconds=settings.ARRIVAL_SECONDS,
                allowed_origins=frozenset(settings.CORS_ALLOWED_ORIGINS),
                is_behind_proxy=bool(getattr(settings, "SECURE_PROXY_SSL_HEADER", None)),
                trusted_proxies=settings.TRUSTED_PROXIES,
                drain_seconds=settings.WEB_DRAIN_SECONDS,
            ),
            has_work=has_open_runs,
            say_goodbye=say_goodbye,
        )
