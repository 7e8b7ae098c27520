"""Which of Django's lines about requests tell more than the access log does?"""

import logging


class OnlyFailures(logging.Filter):
    """Lets exceptions pass that nobody foresaw; a plain 404 or 503 is an answer like others."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record has a traceback that somebody must read."""
        return record.levelno >= logging.ERROR and record.exc_info is not None
