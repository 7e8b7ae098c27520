"""What was stored: retrieved, listed, deleted; and who may."""

import json
from typing import Any

import pytest

from llamero.conversations.models import StoredResponse
from tests.llamero.api.asgi_client import Answer, get, post, start
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.fakes import FakeDispatcher
from tests.llamero.api.responses.reading import events_of

pytestmark = pytest.mark.usefixtures("rows")
URL = "/v1/responses"
CALL = {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}'}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "2"}


async def delete(url: str, **options: Any) -> Answer:
    return await start("DELETE", url, **options).finish()


async def test_what_was_answered_is_there_again(asked: dict[str, Any]) -> None:
    document = (await post(URL, asked)).json()
    assert (await get(f"{URL}/{document['id']}")).json() == document
    refused = await get(f"{URL}/{document['id']}?stream=true")
    assert (refused.status, refused.error["param"]) == (400, "stream")


async def test_nobody_else_finds_it(asked: dict[str, Any]) -> None:
    document = (await post(URL, asked | {"background": True})).json()
    url = f"{URL}/{document['id']}"
    unknown = await get(f"{URL}/resp_{40 * '0'}")
    assert (unknown.status, unknown.error["code"]) == (404, "response_not_found")
    for answer in (
        await get(url, key=LIMITED_KEY),
        await get(f"{url}?stream=true", key=LIMITED_KEY),
        await get(f"{url}/input_items", key=LIMITED_KEY),
        await post(f"{url}/cancel", key=LIMITED_KEY),
        await delete(url, key=LIMITED_KEY),
    ):
        assert answer.status == 404
        assert answer.error == unknown.error | {"message": answer.error["message"]}
    assert (await get(url)).status == 200
    assert (await get(f"{URL}/..%2Fx")).status == 404
    assert (await get(f"{URL}/resp_%00")).status == 404


async def test_what_is_deleted_is_gone(asked: dict[str, Any]) -> None:
    first = (await post(URL, asked)).json()["id"]
    second = (await post(URL, asked | {"previous_response_id": first})).json()["id"]
    gone = await delete(f"{URL}/{first}")
    assert gone.json() == {"id": first, "object": "response", "deleted": True}
    assert (await get(f"{URL}/{first}")).status == 404
    assert (await delete(f"{URL}/{first}")).status == 404
    answer = await post(URL, asked | {"previous_response_id": second})
    assert answer.status == 400
    assert "was deleted" in answer.error["message"]
    assert (await get(f"{URL}/{second}")).status == 200


async def test_items_are_listed_with_those_before(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    first = (await post(URL, asked)).json()
    body = asked | {"input": [CALL, RESULT], "previous_response_id": first["id"]}
    second = (await post(URL, body)).json()
    url = f"{URL}/{second['id']}/input_items"
    listed = (await get(f"{url}?order=asc")).json()
    items = listed["data"]
    assert [item["type"] for item in items] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert items[0]["content"] == [{"type": "input_text", "text": "Hi"}]
    assert items[1] == first["output"][0]
    assert items[2] | CALL == items[2]
    assert (listed["first_id"], listed["has_more"]) == (items[0]["id"], False)
    newest = (await get(f"{url}?limit=3")).json()
    assert (newest["data"], newest["has_more"]) == (items[:0:-1], True)
    rest = (await get(f"{url}?limit=3&after={newest['last_id']}")).json()
    assert (rest["data"], rest["has_more"]) == (items[:1], False)
    back = (await get(f"{url}?limit=2&before={rest['first_id']}")).json()
    assert (back["data"], back["has_more"]) == ([items[2], items[1]], True)
    message = dispatcher.questions[-1].messages[-2]
    assert message["tool_calls"][0]["function"]["name"] == "add"


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "order=up", "after=msg_1"])
async def test_what_is_no_page_is_named(asked: dict[str, Any], query: str) -> None:
    document = (await post(URL, asked)).json()
    answer = await get(f"{URL}/{document['id']}/input_items?{query}")
    assert (answer.status, answer.error["param"]) == (400, query.partition("=")[0])


async def test_a_reference_means_an_item(dispatcher: FakeDispatcher, asked: dict[str, Any]) -> None:
    document = (await post(URL, asked)).json()
    said = document["output"][0]["id"]
    body = asked | {
        "input": [{"type": "item_reference", "id": said}, {"role": "user", "content": "?"}]
    }
    assert (await post(URL, body)).status == 200
    assert [one["content"] for one in dispatcher.questions[-1].messages] == ["Hello", "?"]
    refused = await post(URL, body, key=LIMITED_KEY)
    assert refused.status in (400, 404)
    unknown = await post(URL, asked | {"input": [{"id": said[:-1] + "9"}]})
    assert (unknown.status, unknown.error["code"]) == (400, "item_not_found")


@pytest.mark.parametrize("limit", ["MAX_EARLIER_BYTES", "MAX_ITEMS"])
async def test_a_few_bytes_do_not_mean_a_conversation_without_end(
    asked: dict[str, Any], limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await post(URL, asked)).json()
    item = first["output"][0]
    once = {"type": "item_reference", "id": item["id"]}
    size = 1 if limit == "MAX_ITEMS" else len(json.dumps([item], separators=(",", ":")))
    # Reading the response costs one item, and so does each reference to it.
    monkeypatch.setattr(f"llamero.api.responses.earlier_items.{limit}", 4 * size)
    assert (await post(URL, asked | {"input": [once] * 3})).status == 200
    answer = await post(URL, asked | {"input": [once] * 4})
    assert (answer.status, answer.error["code"]) == (400, "conversation_too_long")
    assert answer.error["param"] == "input[3].id"

    on = asked | {"previous_response_id": first["id"]}
    on |= {"previous_response_id": (await post(URL, on)).json()["id"]}
    answer = await post(URL, on | {"input": [once] * 4})
    assert answer.error["param"].startswith("input[")
    on |= {"previous_response_id": (await post(URL, on)).json()["id"]}
    answer = await post(URL, on)
    assert (answer.status, answer.error["param"]) == (400, "previous_response_id")


async def test_text_that_databases_refuse_is_stored(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    document = (await post(URL, asked | {"input": "a\x00b"})).json()
    listed = (await get(f"{URL}/{document['id']}/input_items")).json()
    assert listed["data"][0]["content"][0]["text"] == "a\x00b"


async def test_contents_go_with_their_key(asked: dict[str, Any]) -> None:
    await post(URL, asked)
    row = await StoredResponse.objects.select_related("api_key").aget()
    await row.api_key.adelete()  # type: ignore[union-attr]
    assert not await StoredResponse.objects.aexists()


async def test_one_can_be_streamed_where_it_goes_on(asked: dict[str, Any]) -> None:
    body = asked | {"stream": True}
    answer = await post(URL, body, headers={"X-Llamero-Resumable": "true"})
    events = events_of(answer)
    assert events[0]["response"]["background"] is False
    url = f"{URL}/{events[0]['response']['id']}?stream=true"
    assert events_of(await get(url)) == events
    refused = await post(URL, body | {"store": False}, headers={"X-Llamero-Resumable": "true"})
    assert (refused.status, refused.error["param"]) == (400, "X-Llamero-Resumable")
