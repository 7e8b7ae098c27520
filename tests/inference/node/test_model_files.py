"""Files that a node fetches by hash: in pieces, verified, resumed, and dropped when unused."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from inference.node import model_files
from inference.node.fetching import ControlPlane, FetchError, Progress
from inference.node.file_cache import FileCache, NoRoomError
from inference.node.model_files import ModelFiles
from inference.protocol.replicas import LoraAdapter
from tests.inference.worker.replicas import make_spec
from tests.processes import wait_until

PIECE_BYTES = 1000
CONTENT = os.urandom(5500)
TOKEN = "lln_abcdefgh_secret"


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


SHA = hash_of(CONTENT)


class Store:
    """A control plane that serves files in small pieces, as badly as it is told."""

    def __init__(self) -> None:
        self.files = {SHA: CONTENT}
        self.starts: list[int] = []
        self.cut_after: int | None = None
        self.status: int | None = None
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                store.answer(self)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        content = self.files.get(request.path.rpartition("/")[2], b"")
        start = int(request.headers["Range"].removeprefix("bytes=").rstrip("-"))
        self.starts.append(start)
        status = self.status or (206 if content else 404)
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            status = 401
        if status == 206 and start >= len(content):
            status = 416
        piece = content[start : start + PIECE_BYTES] if status == 206 else b""
        request.send_response(status)
        request.send_header("Content-Length", str(len(piece)))
        if status == 206:
            last = start + len(piece) - 1
            request.send_header("Content-Range", f"bytes {start}-{last}/{len(content)}")
        elif status == 416:
            request.send_header("Content-Range", f"bytes */{len(content)}")
        request.end_headers()
        if self.cut_after is not None:
            piece, self.cut_after = piece[: self.cut_after], None
            request.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):
            request.wfile.write(piece)


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    yield store
    store.server.shutdown()
    store.server.server_close()


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    return FileCache(tmp_path / "fetched")


def fetch(
    store: Store,
    cache: FileCache,
    sha256: str = SHA,
    *,
    token: str = TOKEN,
    make_room: Callable[[int], None] = lambda _: None,
) -> list[Progress]:
    seen: list[Progress] = []
    plane = ControlPlane(store.url, token)
    try:
        plane.fetch(sha256, cache.partial(sha256), make_room=make_room, note=seen.append)
    finally:
        plane.close()
    return seen


def test_a_file_comes_in_pieces_and_is_verified(store: Store, cache: FileCache) -> None:
    rooms: list[int] = []
    seen = fetch(store, cache, make_room=rooms.append)
    cache.complete(SHA)
    path = cache.find(SHA)
    assert path is not None
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o444
    assert store.starts == [0, 1000, 2000, 3000, 4000, 5000]
    assert rooms == [5500]
    assert seen[-1] == Progress(5500, 5500)


def test_a_broken_fetch_goes_on_where_it_broke_off(store: Store, cache: FileCache) -> None:
    cache.partial(SHA).write_bytes(CONTENT[:1000])
    store.cut_after = 300
    with pytest.raises(FetchError, match="out of reach"):
        fetch(store, cache)
    rooms: list[int] = []
    fetch(store, cache, make_room=rooms.append)
    assert store.starts[:3] == [1000, 1300, 2300]
    assert rooms == [4200]
    assert cache.partial(SHA).read_bytes() == CONTENT


def test_one_that_was_whole_already_is_only_verified(store: Store, cache: FileCache) -> None:
    cache.partial(SHA).write_bytes(CONTENT)
    assert fetch(store, cache) == []
    cache.partial(SHA).write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(FetchError, match="SHA-256 differs"):
        fetch(store, cache)
    assert not cache.partial(SHA).exists()


def test_wrong_bytes_are_thrown_away(store: Store, cache: FileCache) -> None:
    other = hash_of(b"other")
    store.files[other] = CONTENT
    with pytest.raises(FetchError, match="SHA-256 differs"):
        fetch(store, cache, other)
    assert not cache.partial(other).exists()


@pytest.mark.parametrize(
    ("status", "reason"),
    [(None, "no such file"), (200, "answered 200"), (302, "answered 302"), (500, "answered 500")],
)
def test_refusals_are_told(store: Store, cache: FileCache, status: int | None, reason: str) -> None:
    store.status = status
    with pytest.raises(FetchError, match=reason):
        fetch(store, cache, hash_of(b"unknown"))


def test_a_wrong_token_is_told(store: Store, cache: FileCache) -> None:
    with pytest.raises(FetchError, match="does not accept this node's token"):
        fetch(store, cache, token="lln_other")


@pytest.mark.parametrize("url", ["", "example.org", "ftp://example.org", "http://"])
def test_a_bad_address_stops_the_start(url: str) -> None:
    with pytest.raises(ValueError, match="LLAMERO_CONTROL_URL"):
        ControlPlane(url, TOKEN)


def put(cache: FileCache, content: bytes) -> str:
    sha256 = hash_of(content)
    cache.partial(sha256).write_bytes(content)
    cache.complete(sha256)
    return sha256


def test_the_longest_unused_files_make_room_but_never_those_in_use(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, limit_bytes=350)
    first, second, third = (put(cache, bytes([n]) * 100) for n in range(3))
    cache.partial("f" * 64).write_bytes(b"x" * 40)
    os.utime(cache.partial("f" * 64), (0, 0))
    cache.note_use(first)
    cache.make_room(50, keep={third})
    assert not cache.partial("f" * 64).exists()
    assert all(cache.find(sha) for sha in (first, second, third))
    cache.make_room(100, keep={third})
    assert cache.find(second) is None
    assert cache.find(first)
    with pytest.raises(NoRoomError):
        cache.make_room(300, keep={third})
    assert cache.find(third)


def test_complete_files_are_listed_by_use(cache: FileCache) -> None:
    assert cache.list_files() == ()
    first, second = put(cache, b"1"), put(cache, b"22")
    cache.partial("f" * 64).write_bytes(b"x")
    cache.note_use(first)
    listed = cache.list_files()
    assert [(file.sha256, file.size_bytes) for file in listed] == [(first, 1), (second, 2)]
    assert listed[0].used_at == pytest.approx(time.time(), abs=60)


def test_use_leaves_the_time_of_change_alone(cache: FileCache) -> None:
    sha = put(cache, b"content")
    path = cache.find(sha)
    assert path is not None
    changed = path.stat().st_mtime_ns
    cache.note_use(sha)
    assert path.stat().st_mtime_ns == changed


@pytest.fixture
def files(store: Store, cache: FileCache) -> Iterator[ModelFiles]:
    files = ModelFiles(cache, ControlPlane(store.url, TOKEN))
    yield files
    files.want([])


def test_a_spec_waits_for_its_files_and_is_given_their_places(
    files: ModelFiles, cache: FileCache, store: Store, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.gguf"
    shared.write_bytes(b"shared")
    adapter = b"adapter"
    store.files[hash_of(adapter)] = adapter
    spec = make_spec(
        files=(str(shared), "/nowhere/model.gguf"),
        sha256=(hash_of(b"shared"), SHA),
        loras=(LoraAdapter(name="style", file="/nowhere/a.gguf", sha256=hash_of(adapter)),),
    )
    assert files.localize(spec) is None
    assert files.lacks(spec)
    files.want([spec])
    wait_until(lambda: not files.lacks(spec), what="all files are there")
    local = files.localize(spec)
    assert local is not None
    assert local.files[0] == str(shared)
    assert Path(local.files[1]).read_bytes() == CONTENT
    assert Path(local.loras[0].file).read_bytes() == adapter
    assert local.sha256 == spec.sha256


def test_a_fetch_that_fails_is_explained_and_tried_again(
    files: ModelFiles, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(model_files, "LONGEST_PAUSE_SECONDS", 0.02)
    spec = make_spec(files=("/nowhere/model.gguf",), sha256=(SHA,))
    content = store.files.pop(SHA)
    files.want([spec])
    wait_until(lambda: files.num_failures(spec) > 1, what="two tries have failed")
    assert files.describe(spec)[0] == (
        "Cannot fetch its files: the control plane has no such file."
    )
    store.files[SHA] = content
    wait_until(lambda: not files.lacks(spec), what="the file is there")
    assert files.num_failures(spec) == 0


def test_a_file_that_cannot_be_had_keeps_no_other_from_coming(
    files: ModelFiles, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "LONGEST_PAUSE_SECONDS", 0.01)
    bad = make_spec("bad", files=("/nowhere/bad.gguf",), sha256=(hash_of(b"bad"),))
    good = make_spec("good", files=("/nowhere/model.gguf",), sha256=(SHA,))

    def is_there() -> bool:
        files.want([bad, good])
        return not files.lacks(good)

    wait_until(is_there, what="the good file is there")
    assert files.lacks(bad)


def test_what_a_node_runs_is_never_dropped(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "FIRST_PAUSE_SECONDS", 0.01)
    cache = FileCache(tmp_path, limit_bytes=6000)
    running, idle = put(cache, b"r" * 400), put(cache, b"i" * 400)
    files = ModelFiles(cache, ControlPlane(store.url, TOKEN))
    runs = make_spec("runs", files=("/nowhere/r",), sha256=(running,))
    wants = make_spec("wants", files=("/nowhere/w",), sha256=(SHA,))
    files.want([runs, wants])
    wait_until(lambda: not files.lacks(wants), what="the file is there")
    assert cache.find(running)
    assert cache.find(idle) is None
    more = os.urandom(600)
    store.files[hash_of(more)] = more
    third = make_spec("third", files=("/nowhere/t",), sha256=(hash_of(more),))
    files.want([runs, wants, third])
    wait_until(lambda: files.num_failures(third), what="there is no room")
    assert "bytes are missing" in files.describe(third)[0]
    assert not files.lacks(wants)
    files.want([])


def test_without_a_control_plane_paths_are_taken_as_they_are(cache: FileCache) -> None:
    files = ModelFiles(cache, None)
    spec = make_spec(files=("/nowhere/model.gguf",), sha256=(SHA,))
    files.want([spec])
    assert files.localize(spec) == spec
    assert not files.lacks(spec)
