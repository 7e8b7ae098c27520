"""Clients of a running Llamero: OpenAI's own, unmodified, and a bare one for raw requests."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

import openai
import pytest

from tests.live import CHAT_MODEL, EMBEDDING_MODEL, LiveLlamero
from tests.llamero.api.described import check_if_described

HI = [{"role": "user", "content": "Hi"}]


@dataclass(frozen=True)
class Answer:
    """A raw HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        assert self.headers["content-type"].startswith("application/json")
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json()["error"]
        assert {"message", "type", "param", "code"} <= set(error)
        return error

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """The JSON of each server-sent event."""
        assert self.headers["content-type"] == "text/event-stream"
        lines = [line for line in self.body.decode().split("\n\n") if line.startswith("data: ")]
        return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


@dataclass(frozen=True)
class RawClient:
    """Sends requests as they are written."""

    port: int
    key: str = field(repr=False)

    def open(self, method: str, path: str, body: Any = None, **headers: str) -> HTTPConnection:
        """Send a request; the answer is still to be read."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=110)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request(method, path, raw, {**given, **headers})
        return connection

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request and read the answer, which has to be one that the description knows."""
        connection = self.open(method, path, body, **headers)
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(response.status, names, response.read())
        connection.close()
        check_if_described(method, path, answer)
        return answer

    def post(self, path: str, **body: Any) -> Answer:
        """POST fields as JSON."""
        return self.send("POST", path, body)

    def complete(self, prompt: Any, **fields: Any) -> dict[str, Any]:
        """Ask llama-server's route of the chat model."""
        answer = self.post(f"/m/{CHAT_MODEL}/completion", prompt=prompt, **fields)
        assert answer.status == 200, answer.body
        document: dict[str, Any] = answer.json()
        return document

    def chat(self, **fields: Any) -> Answer:
        """Ask the chat route, with a short question unless another is given."""
        return self.post("/v1/chat/completions", **{"model": CHAT_MODEL, "messages": HI, **fields})


@pytest.fixture(scope="session")
def raw(live_llamero: LiveLlamero) -> RawClient:
    """The bare client."""
    return RawClient(live_llamero.port, live_llamero.api_key)


@pytest.fixture(scope="session")
def client(live_llamero: LiveLlamero) -> Iterator[openai.OpenAI]:
    """OpenAI's client."""
    base_url = f"{live_llamero.base_url}/v1"
    with openai.OpenAI(base_url=base_url, api_key=live_llamero.api_key, max_retries=0) as made:
        yield made


@pytest.fixture(scope="session")
def chat_model() -> str:
    """The id of the chat model."""
    return CHAT_MODEL


@pytest.fixture(scope="session")
def embedding_model() -> str:
    """The id of the embedding model."""
    return EMBEDDING_MODEL
