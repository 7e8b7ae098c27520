"""A line to the broker that breaks as networks do: bytes vanish, and nobody is told."""

import asyncio
import contextlib
import threading
from pathlib import Path

PIECE_BYTES = 64 << 10


class Link:
    """Forwards a socket to another, in a thread of its own.

    ``drop`` makes every connection there is a hole that swallows bytes both ways and stays open,
    as when a router forgets them; with ``refuses`` new ones become holes as well, as when a cable
    is cut. ``mend`` lets new connections through again: the holes stay holes.
    """

    def __init__(self, target: Path, path: Path) -> None:
        self.url = f"unix://{path}"
        self._target = target
        self._path = path
        self._loop = asyncio.new_event_loop()
        self._holes: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)
        self._thread.start()
        self._is_up.wait(5)

    def drop(self, *, refuses: bool) -> int:
        """Make holes of all connections; gives their number."""
        self._is_cut = refuses
        holes = set(self._open)
        self._holes |= holes
        return len(holes)

    def mend(self) -> None:
        """Let new connections through."""
        self._is_cut = False

    def close(self) -> None:
        """End the thread, and all connections with it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_unix_server(self._accept, self._path))
        self._is_up.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        """Break all connections, and wait until they are."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)

    async def _accept(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._open.add(back)
        if self._is_cut:
            self._holes.add(back)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            far, forth = await asyncio.open_unix_connection(self._target)
            try:
                ways = (self._pass_on(near, forth, back), self._pass_on(far, back, back))
                await asyncio.gather(*ways)
            finally:
                forth.transport.abort()
        self._open.discard(back)
        self._holes.discard(back)
        back.transport.abort()

    async def _pass_on(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, key: asyncio.StreamWriter
    ) -> None:
        """Copy one way until it ends; a hole is read, and nothing comes out of it."""
        with contextlib.suppress(OSError):
            while piece := await source.read(PIECE_BYTES):
                if key not in self._holes:
                    sink.write(piece)
                    await sink.drain()
        if key not in self._holes:
            sink.close()
