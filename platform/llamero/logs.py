"""Logs: one line an event to the error stream; never bodies, keys or prompts."""

from typing import Any


def build_logging(level: str) -> dict[str, Any]:
    """Give Django's LOGGING."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "request_id": {"()": "llamero.request_ids.AddRequestId"},
            "failures": {"()": "llamero.failures.OnlyFailures"},
            "refusals": {"()": "llamero.failures.QuietRefusals"},
        },
        "formatters": {
            "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(request_id)s%(message)s"}
        },
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["request_id", "refusals"],
            }
        },
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            # Django's own handlers would print a second time.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            # The access log has each answer.
            "django.request": {"filters": ["failures"]},
            "daphne": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            # It tells when each task comes and when it has ended well.
            "celery": {"level": "WARNING" if level == "INFO" else level},
        },
    }
