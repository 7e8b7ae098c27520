"""Which of Django's lines about requests tell more than the access log does, and how loudly?"""

import logging


class OnlyFailures(logging.Filter):
    """Lets exceptions pass that nobody foresaw; a plain 404 or 503 is an answer like others."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record has a traceback that somebody must read."""
        return record.levelno >= logging.ERROR and record.exc_info is not None


class QuietRefusals(logging.Filter):
    """Makes a warning of what Django calls suspicious: it was refused, and no code has failed."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, of those a line."""
        if record.name.startswith("django.security.") and record.levelno == logging.ERROR:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = record.exc_text = None
        return True
