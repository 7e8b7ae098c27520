"""The tools of a request as Anthropic's clients define them, and how they may be used."""

import json
import re
from typing import Any

from llamero.api.openai.tools import MAX_TOOLS, MAX_TOOLS_CHARS
from llamero.api.turn import NO_TOOLS, CallMode, Tool, ToolUse
from llamero.errors import InvalidValue, NotSupported

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MODES = {
    "auto": CallMode.AUTO,
    "any": CallMode.REQUIRED,
    "tool": CallMode.REQUIRED,
    "none": CallMode.NONE,
}


def read_tool_use(tools: Any, choice: Any) -> ToolUse:
    """Validate ``tools`` and ``tool_choice``; either may be absent."""
    read = _read_tools(tools)
    kind, chosen, is_parallel = _read_choice(choice)
    if not read:
        if kind in ("any", "tool"):
            raise InvalidValue("tool_choice", "tool_choice: there are no tools to choose from.")
        return NO_TOOLS
    allowed = (chosen,) if kind == "tool" else ()
    if kind == "tool" and chosen not in {tool.name for tool in read}:
        raise InvalidValue("tool_choice.name", "tool_choice.name must be the name of a tool.")
    return ToolUse(tools=read, mode=_MODES[kind], allowed=allowed, is_parallel=is_parallel)


def _read_tools(value: Any) -> tuple[Tool, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidValue("tools", "tools must be a list.")
    if len(value) > MAX_TOOLS:
        raise InvalidValue("tools", f"tools may hold at most {MAX_TOOLS} tools.")
    if len(json.dumps(value)) > MAX_TOOLS_CHARS:
        message = f"tools may have at most {MAX_TOOLS_CHARS} characters of JSON."
        raise InvalidValue("tools", message)
    read = tuple(_read_tool(tool, f"tools[{i}]") for i, tool in enumerate(value))
    names = [tool.name for tool in read]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidValue(f"tools[{i}].name", f"tools[{i}].name: {name} is there twice.")
    return read


def _read_tool(tool: Any, path: str) -> Tool:
    if not isinstance(tool, dict):
        raise InvalidValue(path, f"{path} must be an object.")
    kind = tool.get("type")
    if kind is not None and kind != "custom":
        message = f"{path}.type: only tools with an input_schema of their own are supported."
        raise NotSupported(f"{path}.type", message)
    name, description = tool.get("name"), tool.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        allowed = "1 to 128 letters, digits, underscores and hyphens"
        raise InvalidValue(f"{path}.name", f"{path}.name must be {allowed}.")
    if description is not None and not isinstance(description, str):
        raise InvalidValue(f"{path}.description", f"{path}.description must be a string.")
    return Tool(
        name=name,
        description=description or "",
        parameters=_read_schema(tool.get("input_schema"), f"{path}.input_schema"),
        is_strict=_read_flag(tool, "strict", path),
        param=f"{path}.input_schema",
    )


def _read_schema(schema: Any, path: str) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise InvalidValue(path, f"{path} must be a JSON schema.")
    if schema.get("type") != "object":
        raise InvalidValue(f"{path}.type", f"{path}.type must be object.")
    return schema


def _read_choice(value: Any) -> tuple[str, str, bool]:
    """Give the kind of choice, the tool it names, and whether calls may be several."""
    if value is None:
        return "auto", "", True
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _MODES:
        message = f"tool_choice must be an object of type {', '.join(_MODES)}."
        raise InvalidValue("tool_choice", message)
    name = value.get("name")
    if kind == "tool" and not isinstance(name, str):
        raise InvalidValue("tool_choice.name", "tool_choice.name must be the name of a tool.")
    is_single = _read_flag(value, "disable_parallel_tool_use", "tool_choice")
    return kind, name if kind == "tool" else "", not is_single


def _read_flag(holder: dict[str, Any], name: str, path: str) -> bool:
    value = holder.get(name)
    if value is not None and type(value) is not bool:
        raise InvalidValue(f"{path}.{name}", f"{path}.{name} must be true or false.")
    return bool(value)
