"""Batches are made, listed and cancelled as OpenAI has it."""

from typing import Any

import pytest
from openai.types import Batch as BatchDocument

from llamero.batches.models import Batch, BatchState
from tests.llamero.api.asgi_client import get, post, start
from tests.llamero.api.batches.helpers import look, make_batch, make_line, upload
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.described import check

URL = "/v1/batches"
ASKED = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}


async def test_a_batch_is_made_and_belongs_to_its_key() -> None:
    made = await make_batch(1, metadata={"for": "night"})
    batch = BatchDocument.model_validate(made)
    assert (batch.status, batch.metadata) == ("validating", {"for": "night"})
    assert batch.expires_at == batch.created_at + 24 * 3600
    url = f"{URL}/{batch.id}"
    shown = await get(url)
    check("GET", url, shown)
    assert shown.json() == made
    assert (await get(url, key=LIMITED_KEY)).error["code"] == "batch_not_found"
    assert (await post(f"{url}/cancel", key=LIMITED_KEY)).status == 404
    assert (await get(URL, key=LIMITED_KEY)).json()["data"] == []


async def test_its_file_may_go() -> None:
    batch = await make_batch(1)
    answer = await start("DELETE", f"/v1/files/{batch['input_file_id']}").finish()
    assert answer.status == 200
    assert (await look(batch))["status"] == "validating"


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"input_file_id": None}, "input_file_id"),
        ({"input_file_id": "file-nothing"}, "input_file_id"),
        ({"input_file_id": "\0"}, "input_file_id"),
        ({"input_file_id": 7}, "input_file_id"),
        ({"endpoint": None}, "endpoint"),
        ({"endpoint": "/v1/rerank"}, "endpoint"),
        ({"completion_window": "48h"}, "completion_window"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {"a": "b\0c"}}, "metadata"),
        ({"metadata": {"a\0": "b"}}, "metadata"),
        ({"output_expires_after": 5}, "output_expires_after"),
        ({"output_expires_after": {"anchor": "x", "seconds": 5}}, "output_expires_after.anchor"),
        (
            {"output_expires_after": {"anchor": "created_at", "seconds": 5}},
            "output_expires_after.seconds",
        ),
    ],
)
async def test_a_bad_request_is_refused(changes: dict[str, Any], param: str) -> None:
    file = (await upload(make_line(1))).json()
    answer = await post(URL, {"input_file_id": file["id"]} | ASKED | changes)
    check("POST", URL, answer)
    assert (answer.status, answer.error["param"]) == (400, param)
    assert not await Batch.objects.aexists()


async def test_anothers_file_is_as_good_as_none() -> None:
    file = (await upload(make_line(1), key=LIMITED_KEY)).json()
    answer = await post(URL, {"input_file_id": file["id"]} | ASKED)
    assert (answer.status, answer.error["param"]) == (400, "input_file_id")


async def test_batches_are_listed_in_pages() -> None:
    ids = [(await make_batch(number))["id"] for number in range(3)][::-1]
    first = await get(f"{URL}?limit=2")
    check("GET", URL, first)
    assert [one["id"] for one in first.json()["data"]] == ids[:2]
    assert first.json()["has_more"]
    rest = (await get(f"{URL}?limit=2&after={ids[1]}")).json()
    assert ([one["id"] for one in rest["data"]], rest["has_more"]) == (ids[2:], False)


async def test_a_batch_that_has_not_ended_can_be_cancelled() -> None:
    batch = await make_batch(1)
    url = f"{URL}/{batch['id']}/cancel"
    answer = await post(url)
    check("POST", url, answer)
    assert answer.json()["status"] == "cancelling"
    assert (await post(url)).json() == answer.json()
    await Batch.objects.aupdate(state=BatchState.COMPLETED)
    late = await post(url)
    assert (late.status, late.error["code"]) == (409, "batch_not_cancellable")
