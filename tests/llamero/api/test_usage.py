"""A key asks what it has used, and is told of nobody else."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.test import RequestFactory
from rest_framework.request import Request

from llamero.accounts.callers import Caller
from llamero.api import usage
from tests.llamero.api.asgi_client import get
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.described import check
from tests.llamero.usage.rows import NOON, make_row, save_rows

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TIMES = "start_time=2026-03-10&end_time=2026-03-13"


@pytest.fixture
def rows(transactional_db: None) -> None:
    save_rows(
        make_row(cost=Decimal("0.0000000021"), currency="EUR", num_reasoning_tokens=2),
        make_row(model_id=4, model_name="other", ended_at=NOON + HOUR),
        make_row(ended_at=NOON + 2 * DAY, finish_reason="cancelled"),
        make_row(ended_at=NOON + 3 * DAY),
        make_row(key_id=2, key_name="second", num_prompt_tokens=1000),
    )


def seconds(moment: datetime) -> int:
    return int(moment.timestamp())


async def test_days_have_what_the_key_used_in_them(rows: None) -> None:
    url = f"/v1/usage?{TIMES}"
    answer = await get(url)
    check("GET", "/v1/usage", answer)
    first, second, third = answer.json()["data"]
    assert (first["start_time"], first["end_time"]) == (
        seconds(NOON - 12 * HOUR),
        seconds(NOON + 12 * HOUR),
    )
    # The job of the model without a price is with that of the model with one.
    assert first["results"] == [
        {
            "object": "usage.result",
            "model": None,
            "num_model_requests": 2,
            "num_failed_requests": 0,
            "num_cancelled_requests": 0,
            "input_tokens": 20,
            "input_cached_tokens": 8,
            "output_tokens": 10,
            "output_reasoning_tokens": 2,
            "amount": {"value": "0.0000000021", "currency": "EUR"},
        }
    ]
    assert second["results"] == []
    assert third["results"][0]["num_cancelled_requests"] == 1
    assert answer.json()["has_more"] is False


async def test_another_key_is_told_of_its_own_whatever_it_names(rows: None) -> None:
    answer = await get(f"/v1/usage?{TIMES}&key_id=1&api_key_ids=1&user_id=1", key=LIMITED_KEY)
    [result] = answer.json()["data"][0]["results"]
    assert (result["num_model_requests"], result["input_tokens"]) == (1, 1000)
    assert answer.json()["data"][2]["results"] == []


async def test_hours_by_model_come_page_by_page(rows: None) -> None:
    begins, ends = seconds(NOON), seconds(NOON + 3 * HOUR)
    url = f"/v1/usage?start_time={begins}&end_time={ends}&bucket_width=1h&group_by=model&limit=2"
    page = (await get(url)).json()
    models = [[one["model"] for one in bucket["results"]] for bucket in page["data"]]
    assert models == [["tiny"], ["other"]]
    assert page["has_more"] is True
    rest = (await get(f"{url}&page={page['next_page']}")).json()
    assert [bucket["start_time"] for bucket in rest["data"]] == [seconds(NOON + 2 * HOUR)]
    assert (rest["has_more"], rest["next_page"]) == (False, None)


async def test_without_times_the_last_days_are_told(transactional_db: None) -> None:
    page = (await get("/v1/usage?limit=3")).json()
    assert len(page["data"]) == 3
    assert page["data"][-1]["end_time"] > datetime.now(UTC).timestamp()


async def test_time_begins_with_unix(rows: None) -> None:
    first = (await get("/v1/usage?start_time=0&limit=2")).json()
    assert [bucket["start_time"] for bucket in first["data"]] == [0, 86400]
    rest = (await get(f"/v1/usage?start_time=0&limit=2&page={first['next_page']}")).json()
    assert rest["data"][0]["start_time"] == 2 * 86400
    assert (await get("/v1/usage?end_time=86400")).json()["data"][0]["start_time"] == 0


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("bucket_width=1m", "bucket_width"),
        ("limit=0", "limit"),
        ("limit=32", "limit"),
        ("limit=1e3", "limit"),
        ("start_time=yesterday", "start_time"),
        ("start_time=99999999999999999999", "start_time"),
        ("start_time=-1", "start_time"),
        ("end_time=0001-01-01T00:00:00%2B14:00", "end_time"),
        ("end_time=0", "end_time"),
        ("start_time=2026-03-10&end_time=2026-03-10", "end_time"),
        ("group_by=user_id", "group_by"),
        ("group_by[]=api_key_id", "group_by"),
        (f"{TIMES}&page=page_1", "page"),
        (f"{TIMES}&page=%00", "page"),
    ],
)
async def test_what_cannot_be_asked_is_named(query: str, param: str) -> None:
    answer = await get(f"/v1/usage?{query}")
    assert (answer.status, answer.error["param"]) == (400, param)


async def test_a_page_takes_few_queries(rows: None, django_assert_max_num_queries: Any) -> None:
    request = Request(RequestFactory().get(f"/v1/usage?{TIMES}&group_by=model"))
    asked = usage.read_query(request, NOON)

    def count() -> None:
        # The sums, the names of models, and two for those of models that are gone.
        with django_assert_max_num_queries(4):
            usage.describe_usage(asked, Caller(None, 1, "key:1"))

    await database_sync_to_async(count)()
