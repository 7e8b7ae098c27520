"""Where a replica's files are on this machine: shared storage, or fetched by hash."""

import logging
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from inference.node.fetching import ControlPlane, FetchError, Progress
from inference.node.file_cache import FileCache, NoRoomError
from inference.protocol.replicas import LoraAdapter, ReplicaSpec

logger = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a file could not be fetched, the last of so many tries in a row."""

    reason: str
    num_tries: int


class ModelFiles:
    """Gives specs with paths of this machine; fetches what is missing in a thread, file by file.

    A path that exists is shared storage, and taken as it is. Without a control plane to fetch
    from, paths that do not exist are left for the replica to complain of.
    """

    def __init__(self, cache: FileCache, source: ControlPlane | None) -> None:
        self._cache = cache
        self._source = source
        self._changed = threading.Condition()
        self._missing: tuple[str, ...] = ()
        self._kept: frozenset[str] = frozenset()
        self._progress: dict[str, Progress] = {}
        self._failures: dict[str, Failure] = {}
        if source is not None:
            thread = threading.Thread(target=self._run, args=(source,), name="files", daemon=True)
            thread.start()

    @property
    def fetches(self) -> bool:
        """Whether files are fetched, and kept, where they are not at their paths."""
        return self._source is not None

    @property
    def cache(self) -> FileCache:
        """Where they are kept."""
        return self._cache

    def want(self, specs: Iterable[ReplicaSpec]) -> None:
        """Fetch what these lack, and drop none of theirs; all others may be dropped."""
        if self._source is None:
            return
        files = [file for spec in specs for file in spec.hashed_files]
        missing = (sha for path, sha in files if not Path(path).is_file() and sha)
        wanted = tuple(sha for sha in dict.fromkeys(missing) if self._cache.find(sha) is None)
        with self._changed:
            self._kept = frozenset(sha for _, sha in files)
            self._failures = {sha: one for sha, one in self._failures.items() if sha in wanted}
            if set(wanted) != set(self._missing):
                self._missing = wanted
                self._changed.notify()

    def localize(self, spec: ReplicaSpec) -> ReplicaSpec | None:
        """Give the spec with the paths of this machine; None while files are missing."""
        if self._source is None:
            return spec
        places = {}
        for name, sha256 in spec.hashed_files:
            if sha256 and not Path(name).is_file():
                path = self._cache.find(sha256)
                if path is None:
                    return None
                self._cache.note_use(sha256)
                places[name] = str(path)
        return _moved(spec, places) if places else spec

    def lacks(self, spec: ReplicaSpec) -> bool:
        """Whether files of a spec are still to be fetched."""
        return self._source is not None and any(
            sha256 and not Path(name).is_file() and self._cache.find(sha256) is None
            for name, sha256 in spec.hashed_files
        )

    def describe(self, spec: ReplicaSpec) -> tuple[str, float]:
        """Say what is being fetched for a spec, or why not, and how much of it is there."""
        for name, sha256 in spec.hashed_files:
            if Path(name).is_file() or self._cache.find(sha256):
                continue
            if failure := self._failures.get(sha256):
                return f"Cannot fetch its files: {failure.reason}.", 0.0
            if progress := self._progress.get(sha256):
                return f"Fetches its files: {progress.share:.0%}", progress.share
        return "Waits for its files.", 0.0

    def num_failures(self, spec: ReplicaSpec) -> int:
        """Count the tries in a row to fetch one of its files that went wrong."""
        found = (self._failures.get(sha256) for _, sha256 in spec.hashed_files)
        return max((failure.num_tries for failure in found if failure), default=0)

    def _run(self, source: ControlPlane) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            with self._changed:
                while not self._missing:
                    self._changed.wait()
                sha256, kept = self._missing[0], self._kept
            try:
                self._fetch(source, sha256, kept)
                pause = FIRST_PAUSE_SECONDS
            except (FetchError, NoRoomError, OSError) as error:
                logger.warning("file %s: %s", sha256[:12], error)
                with self._changed:
                    before = self._failures.get(sha256)
                    num_tries = before.num_tries + 1 if before else 1
                    self._failures[sha256] = Failure(str(error), num_tries)
                    # One that cannot be had must not keep others from coming.
                    if self._missing[:1] == (sha256,):
                        self._missing = (*self._missing[1:], sha256)
                    self._changed.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _fetch(self, source: ControlPlane, sha256: str, kept: Collection[str]) -> None:
        def note(progress: Progress) -> None:
            self._progress[sha256] = progress
            self._failures.pop(sha256, None)

        partial = self._cache.partial(sha256)
        source.fetch(
            sha256,
            partial,
            make_room=lambda num_bytes: self._cache.make_room(num_bytes, {*kept, sha256}),
            note=note,
        )
        self._cache.complete(sha256)
        with self._changed:
            self._missing = tuple(sha for sha in self._missing if sha != sha256)
            self._failures.pop(sha256, None)
            self._progress.pop(sha256, None)
        logger.info("fetched file %s", sha256[:12])


def _moved(spec: ReplicaSpec, places: dict[str, str]) -> ReplicaSpec:
    """Give a spec whose files are elsewhere."""

    def move(name: str) -> str:
        return places.get(name, name)

    def move_adapter(adapter: LoraAdapter) -> LoraAdapter:
        return msgspec.structs.replace(adapter, file=move(adapter.file))

    return msgspec.structs.replace(
        spec,
        files=tuple(map(move, spec.files)),
        draft_files=tuple(map(move, spec.draft_files)),
        loras=tuple(map(move_adapter, spec.loras)),
    )
