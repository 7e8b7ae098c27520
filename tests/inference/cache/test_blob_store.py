"""Saved states keep within their limits, go by age, and come back as they were or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.cache.blob_store import BlobStore
from inference.cache.disk_shelf import DiskCopy, DiskShelf
from inference.cache.holders import Blob
from tests.processes import wait_until


def make_blob(name: int, size: int = 100) -> Blob:
    return Blob("salt", size, memoryview(bytes([name]) * size))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BlobStore]:
    """A store with room for one blob in memory and two on disk."""
    store = BlobStore(100, 250, DiskShelf(tmp_path / "spill"))
    yield store
    store.check_integrity()
    store.close()


def settle(store: BlobStore) -> list[Blob]:
    """Wait until what is on its way to disk is there."""
    dropped: list[Blob] = []
    size = store.num_disk_bytes

    def is_settled() -> bool:
        dropped.extend(store.settle())
        return bool(dropped) or store.num_disk_bytes != size

    wait_until(is_settled, what="the disk")
    return dropped


def test_the_oldest_goes_when_host_memory_is_full() -> None:
    store = BlobStore(250)
    blobs = [make_blob(name) for name in range(3)]
    assert [store.put(blob) for blob in blobs] == [[], [], [blobs[0]]]
    assert [blob in store for blob in blobs] == [False, True, True]
    store.check_integrity()


def test_what_was_of_use_stays_longer() -> None:
    store = BlobStore(250)
    blobs = [make_blob(name) for name in range(3)]
    store.put(blobs[0])
    store.put(blobs[1])
    store.touch(blobs[0])
    assert store.put(blobs[2]) == [blobs[1]]


def test_what_does_not_fit_in_memory_goes_to_disk_and_comes_back(store: BlobStore) -> None:
    first, second = make_blob(1), make_blob(2)
    assert store.put(first) == store.put(second) == []
    assert first in store
    settle(store)
    store.check_integrity()
    assert (first.state, store.num_disk_bytes, store.num_host_bytes) == (None, 100, 100)
    assert store.load(first) == memoryview(bytes([1]) * 100)
    store.discard(first)
    assert (store.num_disk_bytes, len(store)) == (0, 1)
    store.check_integrity()


def test_a_state_is_read_from_memory_while_it_is_being_written(store: BlobStore) -> None:
    first = make_blob(1)
    store.put(first)
    store.put(make_blob(2))
    assert store.load(first) == memoryview(bytes([1]) * 100)
    store.discard(first)
    assert first not in store and len(store) == 1
    store.check_integrity()


def test_the_oldest_goes_when_the_disk_is_full(store: BlobStore) -> None:
    blobs = [make_blob(name) for name in range(4)]
    store.put(blobs[0])
    dropped: list[Blob] = []
    for blob in blobs[1:]:
        store.put(blob)
        dropped += settle(store) if blob is not blobs[3] else []
    while not (more := store.settle()):
        pass
    assert dropped + more == [blobs[0]]
    assert store.num_disk_bytes == 200
    store.check_integrity()


def test_files_have_no_name_and_a_private_folder(tmp_path: Path) -> None:
    shelf = DiskShelf(tmp_path / "spill")
    copy = shelf.write(memoryview(b"prompt")).result()
    assert list((tmp_path / "spill").iterdir()) == []
    assert (tmp_path / "spill").stat().st_mode & 0o777 == 0o700
    assert copy.read() == memoryview(b"prompt")
    copy.close()
    shelf.close()


@pytest.mark.parametrize("damage", ["torn", "changed"])
def test_a_damaged_copy_is_never_given_back(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    copy = DiskCopy(tmp_path, memoryview(b"x" * 1000))
    if damage == "torn":
        copy._file.truncate(500)
    else:
        copy._file.seek(10)
        copy._file.write(b"y")
        copy._file.flush()
    assert copy.read() is None
    assert "is not what was written" in caplog.text
    copy.close()


def test_a_disk_that_refuses_costs_the_prefix_only(
    store: BlobStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "spill").rmdir()
    first = make_blob(1)
    store.put(first)
    store.put(make_blob(2))
    assert settle(store) == [first]
    assert first not in store
    assert "could not be spilled" in caplog.text
    store.check_integrity()


def test_closing_gives_everything_back(store: BlobStore) -> None:
    for name in range(3):
        store.put(make_blob(name))
    store.close()
    assert (len(store), store.num_host_bytes, store.num_disk_bytes) == (0, 0, 0)
