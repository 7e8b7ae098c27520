"""The tools of a chat completion as OpenAI's clients define them, and how they may be used.

The older ``functions`` and ``function_call`` mean the same, with one call at most.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from llamero.api.turn import NO_TOOLS, CallMode, Tool, ToolUse
from llamero.errors import InvalidValue, NotSupported

MAX_TOOLS = 128
MAX_TOOLS_CHARS = 512 * 1024
TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MODES = {"none": CallMode.NONE, "auto": CallMode.AUTO, "required": CallMode.REQUIRED}
_CHOICES = "none, auto, required, or an object of type function or allowed_tools"
_Choice = tuple[CallMode, tuple[str, ...]]


def read_tool_use(fields: Mapping[str, Any]) -> ToolUse:
    """Validate the fields about tools; raises LlameroError."""
    if fields.get("functions"):
        if fields.get("tools"):
            raise InvalidValue("functions", "Give either tools or functions, not both.")
        return _read_functions(fields)
    tools = _read_list(fields.get("tools"), "tools", _read_tool)
    mode, allowed = _read_choice(fields.get("tool_choice"), {tool.name for tool in tools})
    if not tools:
        if mode is CallMode.REQUIRED:
            raise InvalidValue("tool_choice", "tool_choice: there are no tools to choose from.")
        return NO_TOOLS
    is_parallel = fields.get("parallel_tool_calls", True)
    return ToolUse(tools=tools, mode=mode, allowed=allowed, is_parallel=is_parallel)


def _read_functions(fields: Mapping[str, Any]) -> ToolUse:
    tools = _read_list(fields["functions"], "functions", _read_function)
    choice = fields.get("function_call")
    if isinstance(choice, dict):
        choice = {"type": "function", "function": choice}
    elif choice not in (None, "none", "auto"):
        message = "function_call must be none, auto, or an object with a name."
        raise InvalidValue("function_call", message)
    mode, allowed = _read_choice(choice, {tool.name for tool in tools}, "function_call")
    return ToolUse(tools=tools, mode=mode, allowed=allowed, is_parallel=False)


def _read_list(value: Any, param: str, read: Any) -> tuple[Tool, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidValue(param, f"{param} must be a list.")
    if len(value) > MAX_TOOLS:
        raise InvalidValue(param, f"{param} may hold at most {MAX_TOOLS} definitions.")
    if len(json.dumps(value)) > MAX_TOOLS_CHARS:
        message = f"{param} may have at most {MAX_TOOLS_CHARS} characters of JSON."
        raise InvalidValue(param, message)
    tools: tuple[Tool, ...] = tuple(read(one, f"{param}[{i}]") for i, one in enumerate(value))
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            path = tool.param.removesuffix(".parameters") + ".name"
            raise InvalidValue(path, f"{path}: {tool.name} is there twice.")
        seen.add(tool.name)
    return tools


def _read_tool(tool: Any, path: str) -> Tool:
    if not isinstance(tool, dict):
        raise InvalidValue(path, f"{path} must be an object of type function.")
    kind = tool.get("type")
    if not isinstance(kind, str):
        raise InvalidValue(f"{path}.type", f"{path}.type must be function.")
    if kind != "function":
        message = f"{path}: tools of type {kind!r:.40} are not supported, only function."
        raise NotSupported(f"{path}.type", message)
    return _read_function(tool.get("function"), f"{path}.function")


def _read_function(function: Any, path: str) -> Tool:
    if not isinstance(function, dict):
        raise InvalidValue(path, f"{path} must be an object with a name.")
    name, description = function.get("name"), function.get("description")
    strict = function.get("strict")
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        allowed = "1 to 64 letters, digits, underscores, hyphens and dots"
        raise InvalidValue(f"{path}.name", f"{path}.name must be {allowed}.")
    if description is not None and not isinstance(description, str):
        raise InvalidValue(f"{path}.description", f"{path}.description must be a string.")
    if strict is not None and type(strict) is not bool:
        raise InvalidValue(f"{path}.strict", f"{path}.strict must be true or false.")
    return Tool(
        name=name,
        description=description or "",
        parameters=_read_parameters(function.get("parameters"), f"{path}.parameters"),
        is_strict=bool(strict),
        param=f"{path}.parameters",
    )


def _read_parameters(schema: Any, path: str) -> dict[str, Any]:
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        raise InvalidValue(path, f"{path} must be a JSON schema: an object.")
    if schema.get("type", "object") != "object":
        raise InvalidValue(f"{path}.type", f"{path}.type must be object.")
    return schema


def _read_choice(choice: Any, names: set[str], param: str = "tool_choice") -> _Choice:
    """Give whether calls are made, and the names of the tools they may be of, if not all."""
    if choice is None:
        return (CallMode.AUTO if names else CallMode.NONE), ()
    if isinstance(choice, str) and choice in _MODES:
        return _MODES[choice], ()
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "function":
        return CallMode.REQUIRED, (_read_chosen(choice, names, param),)
    if kind == "allowed_tools":
        return _read_allowed(choice.get("allowed_tools", choice), names, f"{param}.allowed_tools")
    raise InvalidValue(param, f"{param} must be {_CHOICES}.")


def _read_allowed(allowed: Any, names: set[str], path: str) -> _Choice:
    mode = allowed.get("mode") if isinstance(allowed, dict) else None
    if mode not in ("auto", "required"):
        raise InvalidValue(f"{path}.mode", f"{path}.mode must be auto or required.")
    tools = allowed.get("tools")
    if not isinstance(tools, list) or not tools:
        raise InvalidValue(f"{path}.tools", f"{path}.tools must be a list of tools.")
    chosen = [_read_chosen(tool, names, f"{path}.tools[{i}]") for i, tool in enumerate(tools)]
    return _MODES[mode], tuple(dict.fromkeys(chosen))


def _read_chosen(tool: Any, names: set[str], path: str) -> str:
    holder = tool.get("function", tool) if isinstance(tool, dict) else None
    name = holder.get("name") if isinstance(holder, dict) else None
    if not isinstance(name, str):
        raise InvalidValue(f"{path}.function.name", f"{path}.function.name must be a string.")
    if name not in names:
        message = f"{path}.function.name: there is no tool {name!r:.80}."
        raise InvalidValue(f"{path}.function.name", message)
    return name
