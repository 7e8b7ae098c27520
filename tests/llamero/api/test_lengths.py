"""How long answers may be: each API's names for it mean the same on every route."""

from typing import Any

import pytest

from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import CONTEXT, FakeDispatcher

HI = [{"role": "user", "content": "Hi"}]
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI},
    "/chat/completions": {"messages": HI},
    "/v1/completions": {"prompt": "Hi"},
    "/completion": {"prompt": "Hi"},
}
NAMES = ("n_predict", "max_tokens", "max_completion_tokens")


async def length(dispatcher: FakeDispatcher, url: str, **fields: Any) -> int | None:
    answer = await post(url, {"model": "smol"} | ROUTES[url] | fields)
    assert answer.status == 200, answer.body
    asked: int | None = dispatcher.jobs[-1].max_tokens
    return asked


@pytest.mark.parametrize("url", ROUTES)
async def test_each_name_bounds_an_answer(dispatcher: FakeDispatcher, url: str) -> None:
    for name in NAMES:
        assert await length(dispatcher, url, **{name: 7}) == 7
    assert await length(dispatcher, url, n_predict=3, max_tokens=7, max_completion_tokens=8) == 3
    assert await length(dispatcher, url, max_tokens=7, max_completion_tokens=8) == 8


@pytest.mark.parametrize("url", ROUTES)
async def test_minus_one_is_no_bound(dispatcher: FakeDispatcher, url: str) -> None:
    for name in NAMES:
        for value in (-1, -2):
            assert await length(dispatcher, url, **{name: value}) in (None, CONTEXT)
