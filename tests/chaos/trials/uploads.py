"""A gateway is killed again and again while a model's file comes in; it loses and adds no byte."""

import asyncio
import base64
import contextlib
import hashlib
import http.client
import json
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from tests.chaos.tally import Tally
from tests.chaos.trial import NotHere, Size, Trial
from tests.gateways import Gateway, GatewayHome
from tests.inference.gguf.builder import I8, Draft, Tensor
from tests.inference.relay.broker import Broker

BYTES_PER_KILL = 100 * 2**20
CHUNK_BYTES = 8 * 2**20
MAX_GROWTH_BYTES = 100 * 2**20
LOOK_SECONDS = 0.02
COLLECTION = "/v1/model-uploads"
KEY_PROGRAM = """
import django
django.setup()
from django.contrib.auth.models import User
from llamero.accounts.scopes import Scope
from llamero.accounts.services import issue_api_key
key = issue_api_key(user=User.objects.get(), name="uploader", scopes=[Scope.UPLOAD])
print(key.secret_text)
"""


@dataclass
class Watch:
    """How much memory a gateway takes, looked at while it works; it may be another process."""

    gateway: Gateway
    base_bytes: int = 0
    most_bytes: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Look until it is over."""
        while not self.is_over.wait(LOOK_SECONDS):
            self.most_bytes = max(self.most_bytes, self.read())

    def read(self) -> int:
        """Give what it takes now."""
        with contextlib.suppress(psutil.Error):
            return int(psutil.Process(self.gateway.process.pid).memory_info().rss)
        return 0


async def kill_under_upload(tally: Tally, size: Size) -> None:
    """A file of 100 MB per kill comes in by tus; each kill strikes in the middle of a piece."""
    with tempfile.TemporaryDirectory(prefix="upload") as name:
        _check_space(Path(name), 3 * size.rounds * BYTES_PER_KILL)
        broker = Broker(Path(name))
        broker.start()
        home = GatewayHome(Path(name) / "home", broker.url)
        try:
            [gateway] = home.start(1)
            await asyncio.to_thread(_upload_under_kills, home, gateway, tally, size.rounds)
        finally:
            home.stop()
            broker.stop()


def _check_space(folder: Path, num_bytes: int) -> None:
    if shutil.disk_usage(folder).free < num_bytes + 2 * 2**30:
        raise NotHere(f"needs {num_bytes // 2**20} MB of disk")


def _upload_under_kills(home: GatewayHome, gateway: Gateway, tally: Tally, kills: int) -> None:
    path = _write_model(home.folder / "big.gguf", kills * BYTES_PER_KILL)
    client = _Client(gateway, home.run_program(KEY_PROGRAM).strip(), path)
    client.begin()
    watch = Watch(gateway)
    watch.base_bytes = watch.read()
    watching = threading.Thread(target=watch.run)
    watching.start()
    killing = threading.Thread(target=_kill, args=(gateway, client, tally, kills))
    killing.start()
    try:
        client.send()
    finally:
        killing.join()
        watch.is_over.set()
        watching.join()
    stored = home.folder / "models" / ".incoming" / client.url.rpartition("/")[2]
    tally.judge(_hash(stored) == _hash(path), "the file that came is another one")
    growth = watch.most_bytes - watch.base_bytes
    words = f"the gateway's memory grew by {growth // 2**20} MB"
    tally.judge(growth <= MAX_GROWTH_BYTES, words)
    print(f"    {path.stat().st_size / 2**30:.2f} GiB, {client.num_cut} pieces cut, {words}")


def _kill(gateway: Gateway, client: "_Client", tally: Tally, kills: int) -> None:
    """Kill it at places spread over the file, at some moment after each was reached."""
    rng = random.Random(18)
    for number in range(kills):
        place = (number + rng.random()) * client.size / kills
        while client.offset < place and not client.is_done:
            time.sleep(LOOK_SECONDS)
        time.sleep(rng.random() * 0.1)
        if client.is_done:
            return
        gateway.kill()
        tally.strike()
        gateway.start()
        gateway.wait_until_listening()


class _Client:
    """Sends a file by tus, and asks where it stands after each failure."""

    def __init__(self, gateway: Gateway, key: str, path: Path) -> None:
        self._gateway, self._path = gateway, path
        self._headers = {"Authorization": f"Bearer {key}", "Tus-Resumable": "1.0.0"}
        self.size = path.stat().st_size
        self.offset = self.num_cut = 0
        self.is_done = False
        self.url = ""

    def begin(self) -> None:
        """Begin the upload."""
        name = base64.b64encode(b"big.gguf").decode()
        headers = {"Upload-Length": str(self.size), "Upload-Metadata": f"filename {name}"}
        self.url = self._ask("POST", COLLECTION, headers)["location"]

    def send(self) -> None:
        """Send all of it."""
        try:
            with self._path.open("rb") as file:
                while self.offset < self.size:
                    self._send_piece(file.fileno())
        finally:
            self.is_done = True

    def _send_piece(self, fd: int) -> None:
        piece = os.pread(fd, CHUNK_BYTES, self.offset)
        headers = {
            "Upload-Offset": str(self.offset),
            "Content-Type": "application/offset+octet-stream",
        }
        try:
            self.offset = int(self._ask("PATCH", self.url, headers, piece)["upload-offset"])
        except (OSError, http.client.HTTPException):
            self.num_cut += 1
            self.offset = self._find_offset()

    def _find_offset(self) -> int:
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                return int(self._ask("HEAD", self.url, {})["upload-offset"])
            time.sleep(0.1)

    def _ask(
        self, method: str, url: str, headers: dict[str, str], body: bytes = b""
    ) -> dict[str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._gateway.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, url, body, self._headers | headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status in (409, 423):
                raise http.client.HTTPException("not now")
            if answer.status >= 300:
                raise AssertionError(f"{method} {answer.status}: {json.loads(text or b'{}')}")
            return {name.lower(): value for name, value in answer.getheaders()}


def _write_model(path: Path, num_bytes: int) -> Path:
    """Write a model with one large tensor, no two of whose megabytes are alike."""
    big = Tensor("blk.0.ffn_up.weight", (num_bytes,), I8, 64, 0)
    head = replace(Draft(), tensors=(*Draft().tensors, big)).pack()
    with path.open("wb") as file:
        file.write(head)
        for block in _blocks(num_bytes):
            file.write(block)
    return path


def _blocks(num_bytes: int) -> Iterator[bytes]:
    for number in range(num_bytes // 2**20):
        yield hashlib.sha256(str(number).encode()).digest() * (2**20 // 32)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


TRIALS = (Trial("P18", "20 kills of a gateway in an upload of 2 GB", kill_under_upload, 20),)
