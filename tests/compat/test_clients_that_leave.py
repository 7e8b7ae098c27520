"""A client that goes away, streaming or not, frees its slot."""

import pytest

from tests.compat.conftest import RawClient
from tests.live import CHAT_MODEL
from tests.processes import wait_until

pytestmark = pytest.mark.model
STORY = [{"role": "user", "content": "Write a long story"}]


def num_busy(raw: RawClient) -> int:
    slots = raw.send("GET", f"/slots?model={CHAT_MODEL}").json()
    return sum(slot["is_processing"] for slot in slots)


@pytest.mark.parametrize("stream", [False, True])
def test_a_slot_is_free_soon_after_its_client_left(raw: RawClient, stream: bool) -> None:
    wait_until(lambda: num_busy(raw) == 0, seconds=10, what="all slots are idle")
    body = {"model": CHAT_MODEL, "messages": STORY, "max_tokens": 1500, "ignore_eos": True}
    connection = raw.open("POST", "/v1/chat/completions", body | {"stream": stream})
    wait_until(lambda: num_busy(raw) == 1, seconds=10, what="the slot is busy")
    if stream:
        assert connection.getresponse().read(10)
    connection.close()
    wait_until(lambda: num_busy(raw) == 0, seconds=4, what="the slot is idle")
