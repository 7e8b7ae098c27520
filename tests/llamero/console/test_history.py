"""Charts: what was used when, by whom, most first."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from llamero.console.history import HEIGHT, MAX_SERIES, OTHERS, WIDTH, Span, Use, draw, read_history
from llamero.usage.models import LedgerRow, UsageHour
from llamero.usage.reports import Group
from tests.models_registry.factories import make_model

BEGIN = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)


def use(minute: int, subject: int, num_tokens: int) -> Use:
    """Make a use."""
    return Use(BEGIN + timedelta(minutes=minute), subject, num_tokens, 1)


def test_bars_are_stacked_the_most_used_at_the_bottom() -> None:
    uses = [use(0, 7, 30), use(0, 8, 10), use(59, 7, 40)]

    history = draw(Span.HOUR, Group.MODEL, uses, BEGIN, {7: "big", 8: "small"})

    assert [(one.name, one.num_tokens) for one in history.series] == [("big", 70), ("small", 10)]
    assert history.peak == 40
    first, second, last = history.bars
    assert (first.series, second.series) == (0, 1)
    assert first.y + first.height == HEIGHT
    assert second.y + second.height == first.y
    assert last.height == HEIGHT
    assert last.x + last.width <= WIDTH


def test_what_is_little_is_put_together() -> None:
    uses = [use(1, subject, 100 - subject) for subject in range(20)]

    history = draw(Span.HOUR, Group.KEY, uses, BEGIN, {})

    assert len(history.series) == MAX_SERIES + 1
    assert history.series[-1].name == OTHERS
    assert sum(one.num_tokens for one in history.series) == sum(100 - n for n in range(20))


@pytest.mark.django_db
def test_the_hour_comes_from_the_ledger_and_the_rest_from_its_sums() -> None:
    model = make_model("smol")
    at = BEGIN + timedelta(minutes=30)
    for number in range(3):
        LedgerRow.objects.create(
            job=f"j{number}",
            model_id=model.pk,
            model_name="smol",
            num_prompt_tokens=10,
            num_completion_tokens=5,
            finish_reason="stop",
            began_at=at,
            ended_at=at,
        )
    UsageHour.objects.create(hour=BEGIN, model_id=model.pk, num_jobs=4, num_prompt_tokens=400)
    now = BEGIN + timedelta(minutes=45)

    hour, day, month = (read_history(span, Group.MODEL, now) for span in Span)

    assert [(one.name, one.num_tokens, one.num_jobs) for one in hour.series] == [("smol", 45, 3)]
    assert [(one.name, one.num_tokens) for one in day.series] == [("smol", 400)]
    assert [(one.name, one.num_tokens) for one in month.series] == [("smol", 400)]


def test_a_chart_is_chosen_by_its_address(staff_browser: Client) -> None:
    for query in ("", "?span=month&by=key", "?span=x&by=y", "?span=&by="):
        assert staff_browser.get(f"/console/history{query}").status_code == 200
