"""Error answers are in the access log alone; exceptions are told with their cause."""

import logging

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import AsyncClient
from django.utils.log import log_response

from llamero.failures import OnlyFailures, QuietRefusals


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


async def test_a_host_that_is_not_ours_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    assert "refusals" in settings.LOGGING["handlers"]["console"]["filters"]
    caplog.handler.addFilter(QuietRefusals())
    answer = await AsyncClient().get("/nowhere", headers={"host": "x"})
    assert answer.status_code == 400
    [record] = [one for one in caplog.records if one.name.startswith("django.security")]
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert "\n" not in record.getMessage()
