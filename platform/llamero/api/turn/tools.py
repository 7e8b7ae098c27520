"""The tools that a request offers, and what the model may do with them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class CallMode(StrEnum):
    """Whether the model calls tools: not at all, as it likes, or at least one."""

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the client can run. ``parameters`` is the JSON schema of its arguments.

    Where it is strict, a schema that cannot be enforced is an error, which names the field
    ``param``; else such arguments are any object.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any]
    is_strict: bool = False
    param: str = "tools"

    def describe(self) -> dict[str, Any]:
        """Give the definition in the shape that chat templates expect."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """The tools of a request and how they may be used; of several calls only if parallel.

    ``allowed`` names those that may be called, where not all that are described may be.
    """

    tools: tuple[Tool, ...] = ()
    mode: CallMode = CallMode.NONE
    allowed: tuple[str, ...] = ()
    is_parallel: bool = True

    @property
    def callable_tools(self) -> tuple[Tool, ...]:
        """The tools that may be called."""
        if self.mode is CallMode.NONE:
            return ()
        if not self.allowed:
            return self.tools
        return tuple(tool for tool in self.tools if tool.name in self.allowed)


NO_TOOLS = ToolUse()
