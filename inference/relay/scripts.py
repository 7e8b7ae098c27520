"""The relay's Lua scripts: read once from the package, run by their digest."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from redis.exceptions import NoScriptError

from inference.relay.connect import AsyncRedis, SyncRedis
from inference.relay.endings import lua_endings
from inference.relay.keys import lua_constants

Argument = str | bytes | int | float
# What each script may call, in this order before its own text.
SHARED = ("prelude", "order", "usage", "counters", "limits", "reserving", "fate", "routing")
# What takes in more work. With a header a script is refused as a whole by a server without memory;
# without one it goes on once it has written anything that needs none.
TAKING_IN = frozenset({"submit", "ask", "admit"})
HEADER = "#!lua\n"


class Script:
    """One Lua script with the shared functions. Safe to use from any thread or loop."""

    def __init__(self, name: str) -> None:
        folder = resources.files("inference.relay") / "lua"
        parts = [(folder / f"{part}.lua").read_text() for part in (*SHARED, name)]
        header = HEADER if name in TAKING_IN else ""
        self.text = header + lua_constants() + lua_endings() + "".join(parts)
        self.digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def run(self, redis: SyncRedis, arguments: Sequence[Argument]) -> Any:
        """Run the script; a server that does not know it yet is taught it."""
        execute: Any = redis.execute_command  # untyped in redis-py
        try:
            return execute("EVALSHA", self.digest, 0, *arguments)
        except NoScriptError:
            return execute("EVAL", self.text, 0, *arguments)

    async def run_async(self, redis: AsyncRedis, arguments: Sequence[Argument]) -> Any:
        """Run the script without blocking the event loop."""
        execute: Any = redis.execute_command  # untyped in redis-py
        try:
            return await execute("EVALSHA", self.digest, 0, *arguments)
        except NoScriptError:
            return await execute("EVAL", self.text, 0, *arguments)


@cache
def script(name: str) -> Script:
    """Give the script of that name."""
    return Script(name)
