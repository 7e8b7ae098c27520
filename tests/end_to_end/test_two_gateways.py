"""A stream that began at one gateway goes on at another, which is all that is left."""

import contextlib
import http.client
import json
import random
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import openai
import pytest

from inference.relay.connect import connect
from tests.gateways import GatewayHome, Reader, cut_lengths, id_of, read_whole, text_of
from tests.inference.relay.broker import Broker
from tests.inference.worker.replicas import Client, make_spec, start_worker
from tests.processes import PATIENCE_SECONDS, wait_until

NUM_TOKENS = 300
PATH = "/v1/completions"
BODY = {"model": "chat", "prompt": "Once", "max_tokens": NUM_TOKENS, "stream": True}
KEYED = {"model": "chat", "prompt": "Once", "max_tokens": 60}


@pytest.fixture(scope="module")
def home(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayHome]:
    """A broker, a replica of the fake engine at 5 ms a token, and a place for gateways."""
    folder = tmp_path_factory.mktemp("gateways")
    process = start_worker(broker.url, make_spec(), LLAMERO_HOME=str(folder))
    home = GatewayHome(folder, broker.url)
    try:
        with connect(broker.url) as redis:
            Client(broker.url, redis).wait_for_status()
        yield home
    finally:
        home.stop()
        process.kill()
        process.communicate()


def undisturbed_text(home: GatewayHome, port: int) -> str:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{PATH}",
        json.dumps(BODY | {"stream": False}).encode(),
        {"Authorization": f"Bearer {home.key()}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        [choice] = json.load(answer)["choices"]
        return str(choice["text"])


def status_of(port: int, key: str, run: str) -> tuple[int, bytes]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/runs/{run}/events", headers={"Authorization": f"Bearer {key}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return answer.status, b""
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_stream_outlives_its_gateway(home: GatewayHome) -> None:
    first, second = home.start(2)
    text = undisturbed_text(home, second.port)
    reader = Reader(home.key(), PATH, BODY)
    reader.read(first.port, 8000)
    assert 3 < len(reader.events) < NUM_TOKENS / 2
    first.kill()

    reader.read(second.port)

    assert reader.is_finished
    ids = [id_of(event) for event in reader.events]
    assert ids == [str(number + 1) for number in range(len(ids))]
    assert text_of(reader.events) == text
    assert read_whole(home.key(), second.port, reader.run) == reader.events
    strange = status_of(second.port, home.key("other-key"), reader.run)
    unknown = status_of(second.port, home.key(), "run_" + "0" * 32)
    assert strange == unknown
    assert strange[0] == 404


def test_a_stream_is_cut_again_and_again(home: GatewayHome) -> None:
    gateways = home.start(2)
    text = undisturbed_text(home, gateways[0].port)
    rng = random.Random(5)
    reader = Reader(home.key(), PATH, BODY)
    for number, length in enumerate(cut_lengths(rng, 20_000)):
        reader.read(gateways[number % 2].port, length)
        if reader.is_finished:
            break
    assert text_of(reader.events) == text
    assert read_whole(home.key(), gateways[1].port, reader.run) == reader.events


def test_a_response_goes_on_at_another_gateway(home: GatewayHome) -> None:
    second = home.running()
    [first] = home.start(1)
    one, other = (
        openai.OpenAI(base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key=home.key())
        for gateway in (first, second)
    )
    asked: Any = {"model": "chat", "input": "Hi", "max_output_tokens": NUM_TOKENS}
    with one, other:
        unread = one.responses.create(**asked, background=True)
        stream = one.responses.create(**asked, background=True, stream=True)
        told = list(islice(stream, 20))
        first.kill()
        last = told[-1].sequence_number
        rest = list(other.responses.retrieve(told[0].response.id, stream=True, starting_after=last))
        assert [event.sequence_number for event in rest] == list(range(20, 20 + len(rest)))
        assert other.responses.retrieve(told[0].response.id) == rest[-1].response
        wait_until(
            lambda: other.responses.retrieve(unread.id).status == "incomplete",
            what="the response that nobody reads",
        )
        texts = [
            other.responses.retrieve(id_).output_text for id_ in (unread.id, told[0].response.id)
        ]
        assert texts[0] == texts[1]
        assert len(texts[0]) == NUM_TOKENS
        stream.close()


def ask_keyed(
    home: GatewayHome, port: int, key: str, num_bytes: int | None = None, **fields: Any
) -> tuple[bytes, bool]:
    """Give the answer to a request with a key, or its beginning, and whether it was made before."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    headers = {"Authorization": f"Bearer {home.key()}", "Content-Type": "application/json"}
    with contextlib.closing(connection):
        raw = json.dumps(KEYED | fields)
        connection.request("POST", "/v1/completions", raw, headers | {"Idempotency-Key": key})
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read(num_bytes), answer.headers["Idempotent-Replayed"] == "true"


def events_of(body: bytes) -> list[str]:
    """Give the events of a stream, without comments."""
    lines = [line for line in body.decode().split("\n") if not line.startswith(":")]
    return [one for one in "\n".join(lines).split("\n\n") if one.strip()]


def test_a_second_gateway_answers_what_a_first_one_began(home: GatewayHome, broker: Broker) -> None:
    second = home.running()
    [first] = home.start(1)
    whole, is_repeated = ask_keyed(home, first.port, "whole")
    assert not is_repeated
    ask_keyed(home, first.port, "stream", 2000, stream=True)

    def ask_in_vain() -> None:
        with pytest.raises((OSError, http.client.HTTPException)):
            ask_keyed(home, first.port, "lost", max_tokens=NUM_TOKENS)

    lost = threading.Thread(target=ask_in_vain)
    lost.start()
    with connect(broker.url) as redis:

        def find_claims() -> list[bytes]:
            return [name for name in redis.keys("lm:answer:*") if redis.hlen(name) == 2]

        wait_until(find_claims, what="the claim of a request that is being answered")
        first.kill()
        lost.join(PATIENCE_SECONDS)
        # What ten seconds without a sign of life would do.
        redis.delete(*find_claims())

    assert ask_keyed(home, second.port, "whole") == (whole, True)
    stream, is_repeated = ask_keyed(home, second.port, "stream", stream=True)
    assert is_repeated
    assert text_of(events_of(stream)) == json.loads(whole)["choices"][0]["text"]
    _, is_repeated = ask_keyed(home, second.port, "lost", max_tokens=NUM_TOKENS)
    assert not is_repeated


def test_a_key_that_ends_takes_its_streams_at_every_gateway_along(home: GatewayHome) -> None:
    ports = [home.running().port, home.start(1)[0].port]
    readers = [Reader(home.key("ending-key"), PATH, BODY | {"max_tokens": 3000}) for _ in ports]
    threads = [
        threading.Thread(target=reader.read, args=(port,))
        for reader, port in zip(readers, ports, strict=True)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: all(len(one.events) > 3 for one in readers), what="events")

    # As by a program that tells nobody.
    with contextlib.closing(
        sqlite3.connect(home.folder / "llamero.sqlite3", timeout=PATIENCE_SECONDS)
    ) as rows:
        rows.execute("UPDATE accounts_apikey SET enabled = 0 WHERE name = 'ending-key'")
        rows.commit()

    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    for reader, port in zip(readers, ports, strict=True):
        assert '"code":"key_revoked"' in reader.events[-1]
        assert len(reader.events) < 3000
        assert status_of(port, home.key("ending-key"), reader.run)[0] == 401


def test_ten_requests_a_minute_are_ten_at_all_gateways_together(home: GatewayHome) -> None:
    ports = [gateway.port for gateway in home.several(2)]

    def ask(number: int) -> tuple[int, str | None, str | None]:
        connection = http.client.HTTPConnection(
            "127.0.0.1", ports[number % 2], timeout=PATIENCE_SECONDS
        )
        headers = {"Authorization": f"Bearer {home.key('limited-key')}"}
        body = json.dumps({"model": "chat", "prompt": [3, number + 1], "max_tokens": 2})
        with contextlib.closing(connection):
            connection.request("POST", PATH, body, headers | {"Content-Type": "application/json"})
            answer = connection.getresponse()
            told = answer.headers
            return answer.status, told["x-ratelimit-remaining-requests"], told["retry-after"]

    began = time.monotonic()
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(ask, range(24)))

    served = [left for status, left, _ in answers if status == 200]
    assert sorted(map(int, filter(None, served))) == list(range(10))
    refused = [(status, left) for status, left, _ in answers if status != 200]
    assert set(refused) == {(429, "0")}
    took = time.monotonic() - began
    assert all(60 - took <= int(wait) <= 61 for status, _, wait in answers if wait)
