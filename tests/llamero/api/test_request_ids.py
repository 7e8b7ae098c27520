"""Every answer names its request: as the client did where that is fit to be logged, else anew."""

import logging

import pytest

from llamero.request_ids import AddRequestId
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FakeDispatcher

CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    "offered", ["a", "req_42", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "x" * 128]
)
async def test_a_well_formed_name_comes_back(offered: str) -> None:
    answer = await get("/v1/models", headers={"x-request-id": offered})
    assert answer.headers["x-request-id"] == offered


@pytest.mark.parametrize(
    "offered", ["", " ", "a b", "x" * 129, "a\tb", "é", "<script>", "-", "a,b"]
)
async def test_any_other_is_replaced(offered: str) -> None:
    answer = await get("/v1/models", headers={"x-request-id": offered})
    assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("url", ["/v1/chat/completions", "/v1/nothing", "/completion", "/health"])
async def test_refusals_are_named_too(url: str) -> None:
    answer = await post(url, b"{", key=None, headers={"x-request-id": "mine"})
    assert answer.status >= 400
    assert answer.headers["x-request-id"] == "mine"


async def test_a_stream_is_named_and_says_its_version() -> None:
    answer = await post("/v1/chat/completions", CHAT | {"stream": True})
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.headers["openai-version"] == "2020-10-01"
    assert int(answer.headers["openai-processing-ms"]) >= 0


async def test_the_log_names_the_request(
    dispatcher: FakeDispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(job: object) -> None:
        raise RuntimeError("no such luck")

    dispatcher.script = explode  # type: ignore[assignment]
    caplog.handler.addFilter(naming := AddRequestId())
    try:
        answer = await post("/v1/chat/completions", CHAT, headers={"x-request-id": "mine"})
    finally:
        caplog.handler.removeFilter(naming)
    assert answer.status == 500
    errors = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert {one.request_id for one in errors} == {"[mine] "}  # type: ignore[attr-defined]
