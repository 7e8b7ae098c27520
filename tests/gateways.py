"""Gateway processes in front of a broker that a test has, and clients that leave and come back."""

import contextlib
import http.client
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.databases import fill_home
from tests.processes import (
    PATIENCE_SECONDS,
    ROOT,
    child_environment,
    find_free_port,
    is_listening,
    wait_until,
)

# One chat model, whose deployment is the one that the tests' replicas serve.
PREPARE_PROGRAM = """
import django
django.setup()
from django.conf import settings
from django.contrib.auth.models import User
from llamero.accounts.services import issue_api_key
from llamero.limits.services import limit_key
from models_registry.models import Deployment, Model, ModelVersion
user = User.objects.create_superuser("admin", password="admin")
for name in ("key", "other-key", "ending-key"):
    (settings.HOME / name).write_text(issue_api_key(user=user, name=name).secret_text)
for name, limit in (("limited-key", "requests_per_minute"), ("budget-key", "tokens_per_day")):
    issued = issue_api_key(user=user, name=name)
    limit_key(key=issued.key, limits={{limit: 10 if name == "limited-key" else 10_000}})
    (settings.HOME / name).write_text(issued.secret_text)
model = Model.objects.create(slug="chat", title="Chat", kind="chat")
ModelVersion.objects.create(model=model, number=1, state="ready", is_current=True)
Deployment.objects.create(slug="chat", model=model, state="ready", **{profile!r})
"""


class Gateway:
    """One gateway as a process."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.port = find_free_port()
        self._environment = environment
        self._log = log
        self.start()

    def start(self) -> None:
        """Start it, once more at the same port if it has ended."""
        with self._log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "serve", "--port", str(self.port)],
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_until_listening(self) -> None:
        """Return when clients can connect."""
        wait_until(lambda: is_listening(self.port), what="a gateway")

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)


class GatewayHome:
    """A database with a model and some keys, two of them limited, and the gateways that share it.

    ``profile`` are fields of the model's deployment. A folder that was copied from another home
    ``is_prepared``.
    """

    def __init__(
        self, folder: Path, redis_url: str, *, is_prepared: bool = False, **profile: int
    ) -> None:
        self.folder = folder
        self._environment = child_environment(LLAMERO_HOME=str(folder), LLAMERO_REDIS_URL=redis_url)
        self._gateways: list[Gateway] = []
        if not is_prepared:
            fill_home(folder)
            subprocess.run(
                [sys.executable, "-c", PREPARE_PROGRAM.format(profile=profile)],
                env=self._environment,
                check=True,
                timeout=120,
            )

    def key(self, name: str = "key") -> str:
        """Give an API key."""
        return (self.folder / name).read_text()

    def run_program(self, program: str) -> str:
        """Run a program with this home's settings; gives what it prints."""
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=self._environment,
            check=True,
            timeout=120,
            capture_output=True,
            text=True,
        )
        return done.stdout

    @property
    def ports(self) -> list[int]:
        """Where the gateways listen."""
        return [gateway.port for gateway in self._gateways]

    def start(self, number: int) -> list[Gateway]:
        """Start gateways, and wait until they listen."""
        started = [Gateway(self._environment, self.folder / "log") for _ in range(number)]
        self._gateways += started
        for one in started:
            one.wait_until_listening()
        return started

    def running(self) -> Gateway:
        """Give a gateway that runs, of those started before if there is one."""
        for gateway in self._gateways:
            if gateway.process.poll() is None:
                return gateway
        return self.start(1)[0]

    def several(self, number: int) -> list[Gateway]:
        """Give so many gateways that run, starting those that are lacking."""
        alive = [gateway for gateway in self._gateways if gateway.process.poll() is None]
        return alive[:number] + self.start(max(0, number - len(alive)))

    def stop(self) -> None:
        """End all of them."""
        for gateway in self._gateways:
            gateway.kill()


class Reader:
    """A client of one resumable stream, who may leave at any byte and come back anywhere.

    ``events`` are the numbered events it has, as text.
    """

    def __init__(self, key: str, path: str, body: dict[str, Any]) -> None:
        self._key = key
        self._path = path
        self._body = body
        self.run = ""
        self.events: list[str] = []

    @property
    def last_id(self) -> str:
        """The id of the last event."""
        return id_of(self.events[-1]) if self.events else ""

    @property
    def is_finished(self) -> bool:
        """Whether the stream has ended well."""
        return bool(self.events) and self.events[-1].endswith("data: [DONE]")

    def read(self, port: int, num_bytes: float = float("inf")) -> None:
        """Start or resume at a gateway; leave after so many bytes or at the end."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        try:
            with contextlib.suppress(ConnectionError, http.client.IncompleteRead):
                answer = self._ask(connection)
                self._take(answer, num_bytes)
        finally:
            connection.close()

    def _ask(self, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self._key}"}
        if self.run:
            headers["Last-Event-ID"] = self.last_id
            connection.request("GET", f"/v1/runs/{self.run}/events", headers=headers)
        else:
            headers |= {"Content-Type": "application/json", "X-Llamero-Resumable": "true"}
            connection.request("POST", self._path, json.dumps(self._body), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        self.run = answer.headers["X-Llamero-Run"]
        return answer

    def _take(self, answer: http.client.HTTPResponse, num_bytes: float) -> None:
        text = b""
        while num_bytes > 0 and (piece := answer.read1(int(min(num_bytes, 4096)))):
            num_bytes -= len(piece)
            *whole, text = (text + piece).split(b"\n\n")
            # A comment may stand by itself, or before an event.
            told = (re.sub(rb"^:.*\n?", b"", event, flags=re.MULTILINE) for event in whole)
            self.events += [event.decode() for event in told if event]


def id_of(event: str) -> str:
    """Give the id of an event."""
    name, _, number = event.partition("\n")[0].partition(": ")
    assert name == "id", event
    return number


def read_whole(key: str, port: int, run: str) -> list[str]:
    """Give all events of a run, read without a break."""
    reader = Reader(key, "", {})
    reader.run = run
    reader.read(port)
    return reader.events


def text_of(events: list[str]) -> str:
    """Give the text of a chat or a completion of one choice."""
    pieces = []
    for event in events:
        data = event.partition("data: ")[2]
        if data != "[DONE]":
            [choice] = json.loads(data)["choices"]
            pieces.append(choice.get("text") or choice.get("delta", {}).get("content") or "")
    return "".join(pieces)


def cut_lengths(rng: random.Random, longest: int) -> Iterator[int]:
    """Give after how many bytes a client leaves: sometimes at once, twice before any event."""
    while True:
        yield rng.choice((1, rng.randrange(1, 200), rng.randrange(1, longest)))
