"""A client that goes away, streaming or not, frees its slot."""

import re

import pytest

from tests.compat.conftest import RawClient
from tests.live import CHAT_MODEL
from tests.processes import wait_until

pytestmark = pytest.mark.model
STORY = [{"role": "user", "content": "Write a long story"}]


def num_busy(raw: RawClient) -> int:
    slots = raw.send("GET", f"/slots?model={CHAT_MODEL}").json()
    return sum(slot["is_processing"] for slot in slots)


def num_told(raw: RawClient) -> int:
    """Count all tokens that the model has generated."""
    text = raw.send("GET", f"/m/{CHAT_MODEL}/metrics").body.decode()
    found = re.search(r"^llamacpp:tokens_predicted_total (\d+)$", text, re.MULTILINE)
    assert found
    return int(found[1])


@pytest.mark.parametrize("stream", [False, True])
def test_a_slot_is_free_soon_after_its_client_left(raw: RawClient, stream: bool) -> None:
    wait_until(lambda: num_busy(raw) == 0, what="all slots are idle")
    body = {"model": CHAT_MODEL, "messages": STORY, "max_tokens": 1500, "ignore_eos": True}
    num_before = num_told(raw)
    connection = raw.open("POST", "/v1/chat/completions", body | {"stream": stream})
    wait_until(lambda: num_busy(raw) == 1, what="the slot is busy")
    if stream:
        assert connection.getresponse().read(10)
    connection.close()
    wait_until(lambda: num_busy(raw) == 0, what="the slot is idle")
    assert num_told(raw) - num_before < body["max_tokens"]
