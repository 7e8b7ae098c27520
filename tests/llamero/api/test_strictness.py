"""What every address that takes a body refuses alike, and what all of them leave unread."""

import json
from typing import Any

import msgspec
import pytest

from llamero.api.fields import REFUSED_FIELDS
from tests.llamero.api.asgi_client import Answer, post, start
from tests.llamero.api.fakes import FakeDispatcher

MESSAGES = [{"role": "user", "content": "Hi"}]
GENERATING: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": MESSAGES},
    "/v1/completions": {"prompt": "x"},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 4},
    "/v1/responses": {"input": "x", "store": False},
    "/completion": {"prompt": "x"},
}
BODIES = GENERATING | {
    "/v1/messages/count_tokens": {"messages": MESSAGES},
    "/v1/embeddings": {"input": "x"},
    "/v1/rerank": {"query": "x", "documents": ["y"]},
    "/infill": {"input_prefix": "x", "input_suffix": "y"},
    "/embedding": {"content": "x"},
    "/rerank": {"query": "x", "documents": ["y"]},
    "/tokenize": {"content": "x"},
    "/detokenize": {"tokens": [1]},
    "/apply-template": {"messages": MESSAGES},
}
NOT_JSON = (
    b'"x":1,"x":2',
    b'"model":"smol"',
    b'"x":{"y":1,"y":1}',
    b'"x":NaN',
    b'"x":[-Infinity]',
    b'"x":1e999',
    b'"x":' + b"9" * 5000,
    b'"x":"\\ud800"',
    b'"\\udc00":1',
    b'"x":"\xff"',
    b'"x":"\xed\xa0\x80"',
    b'"x":01',
    b'"x":1,',
    b"'x':1",
    b'"x":"\n"',
    b'"x":' + b"[" * 64 + b"]" * 64,
    b'"x":' + b'{"a":' * 9000,
)
every_route = pytest.mark.parametrize("path", BODIES)


def raw_with(path: str, member: bytes) -> bytes:
    """Give a good body with one more member, as it is written."""
    return json.dumps({"model": "smol", **BODIES[path]}).encode()[:-1] + b"," + member + b"}"


def check_error(answer: Answer, status: int, param: str | None = None) -> None:
    """Check that an error is in the shape of its address, whatever that is."""
    document = answer.json()
    assert answer.status == status, (document, status)
    assert document["error"]["message"]
    assert len(answer.body) < 1000
    details = document["error"].get("details", document["error"])
    assert details.get("param") == param


@every_route
async def test_a_field_that_names_what_is_not_the_clients_is_refused(
    dispatcher: FakeDispatcher, path: str
) -> None:
    for name in REFUSED_FIELDS if path in GENERATING else REFUSED_FIELDS[:3]:
        answer = await post(path, {"model": "smol", **BODIES[path], name: "file:///etc/passwd"})
        check_error(answer, 400, name)
        assert "passwd" not in answer.body.decode()
    assert dispatcher.jobs == []


@pytest.mark.parametrize("path", GENERATING)
async def test_an_unknown_field_is_ignored_and_reaches_no_engine(
    dispatcher: FakeDispatcher, path: str
) -> None:
    unknown = {"foo": "marker", "deadline": "marker", "owner": "marker", "salt": "marker"}
    nothing = dict.fromkeys(REFUSED_FIELDS)
    answer = await post(path, {"model": "smol", **BODIES[path], **unknown, **nothing})
    assert answer.status == 200, answer.body
    assert b"marker" not in msgspec.json.encode(dispatcher.jobs)


@every_route
async def test_what_is_no_strict_json_is_refused_whatever_it_is_about(
    dispatcher: FakeDispatcher, path: str
) -> None:
    for member in NOT_JSON:
        check_error(await post(path, raw_with(path, member)), 400)
    assert dispatcher.jobs == []


@every_route
async def test_a_body_of_another_kind_is_refused(path: str) -> None:
    raw = raw_with(path, b'"x":1')
    for kind in ("", "text/plain", "application/json; charset=utf-16", "multipart/form-data"):
        check_error(await post(path, raw, headers={"content-type": kind}), 415)
    check_error(await post(path, raw, headers={"content-encoding": "gzip"}), 415)
    for empty in (b"", b" \n", b"\xef\xbb\xbf"):
        check_error(await post(path, empty), 400)
    for other in (b"[]", b"null", b'"x"', b"5", raw + b"{}"):
        check_error(await post(path, other), 400)


@every_route
async def test_the_way_to_an_address_is_exact(path: str) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        answer = await start(method, path, key=None).finish()
        assert answer.status == 405
        assert "POST" in answer.headers["allow"]
    assert (await start("OPTIONS", path, key=None).finish()).status == 204
    for address in (f"{path}/", f"/{path}", f"{path}//", path.upper()):
        check_error(await post(address, {}), 404)
    check_error(await post(path, b"{", key=None), 401)
    check_error(await post(path, b"{", key="llm_wrong"), 401)


@every_route
async def test_a_body_that_is_too_large_is_refused_before_it_is_read(
    settings: Any, path: str
) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    check_error(await post(path, raw_with(path, b'"x":"' + b" " * 1000 + b'"')), 413)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_limits_are_settings(settings: Any, path: str) -> None:
    settings.MAX_JSON_DEPTH, settings.MAX_MESSAGES = 3, 2
    good = {"model": "smol", "max_tokens": 4, "messages": MESSAGES * 2}
    assert (await post(path, good)).status == 200
    check_error(await post(path, good | {"messages": MESSAGES * 3}), 400, "messages")
    check_error(await post(path, good | {"x": [[[]]]}), 400)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/completion"])
async def test_whole_numbers_and_llama_servers_names_count_on_each_api(
    dispatcher: FakeDispatcher, path: str
) -> None:
    fields = b'"max_tokens":5.0,"top_k":40.0,"seed":3.0,"n_probs":7,"n_cmpl":2.0'
    assert (await start("POST", path, raw_with(path, fields)).finish()).status == 200
    jobs = [(job.max_tokens, job.sampling.top_k, job.num_logprobs) for job in dispatcher.jobs]
    assert jobs == [(5, 40, 7), (5, 40, 7)]
    assert dispatcher.jobs[0].sampling.seed == 3
    with_half = raw_with(path, b'"max_tokens":5.5')
    check_error(await start("POST", path, with_half).finish(), 400, "max_tokens")
