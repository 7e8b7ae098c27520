"""Error answers are in the access log alone; exceptions are told with their cause."""

import logging

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.utils.log import log_response

from llamero.failures import OnlyFailures


@pytest.mark.parametrize(
    ("status", "error", "is_told"),
    [
        (404, None, False),
        (403, PermissionError(), False),
        (503, None, False),
        (500, OSError(), True),
    ],
)
def test_only_exceptions_nobody_foresaw_are_told(
    caplog: pytest.LogCaptureFixture, status: int, error: Exception | None, is_told: bool
) -> None:
    assert settings.LOGGING["loggers"]["django.request"] == {"filters": ["failures"]}
    logger = logging.getLogger("tests.failures")
    logger.addFilter(OnlyFailures())
    log_response("%s", "/x", response=HttpResponse(status=status), exception=error, logger=logger)
    assert bool(caplog.records) is is_told
