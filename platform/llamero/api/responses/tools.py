"""The tools of a request as the Responses API defines them: flat, functions only."""

from dataclasses import dataclass
from typing import Any

from llamero.api.openai.tools import MAX_TOOLS, TOOL_NAME
from llamero.api.turn import NO_TOOLS, CallMode, Tool, ToolUse
from llamero.errors import InvalidValue, NotSupported

_FUNCTIONS_ONLY = "only functions of your own are supported: this server runs no tools"


@dataclass(frozen=True, slots=True)
class ToolFields:
    """The fields about tools: what they mean, and as a response repeats them."""

    use: ToolUse
    tools: list[dict[str, Any]]
    choice: str | dict[str, Any]


def read_tool_fields(tools: Any, choice: Any, *, is_parallel: bool) -> ToolFields:
    """Validate ``tools`` and ``tool_choice``; either may be absent."""
    if tools is None:
        tools = []
    if not isinstance(tools, list):
        raise InvalidValue("tools", "tools must be a list.")
    if len(tools) > MAX_TOOLS:
        raise InvalidValue("tools", f"tools may hold at most {MAX_TOOLS} tools.")
    read = tuple(_read_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools))
    names = [tool.name for tool in read]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidValue(f"tools[{i}].name", f"tools[{i}].name: {name} is there twice.")
    mode, allowed = _read_choice(choice, names)
    if not read:
        if mode is CallMode.REQUIRED:
            raise InvalidValue("tool_choice", "tool_choice: there are no tools to choose from.")
        return ToolFields(NO_TOOLS, [], "auto" if choice is None else choice)
    use = ToolUse(tools=read, mode=mode, allowed=allowed, is_parallel=is_parallel)
    return ToolFields(use, [_echo(tool) for tool in read], "auto" if choice is None else choice)


def _read_tool(tool: Any, path: str) -> Tool:
    if not isinstance(tool, dict):
        raise InvalidValue(path, f"{path} must be an object with a type.")
    kind = tool.get("type")
    if kind != "function":
        if not isinstance(kind, str):
            raise InvalidValue(f"{path}.type", f"{path}.type must be a string.")
        raise NotSupported(f"{path}.type", f"{path}.type is {kind!r:.40}: {_FUNCTIONS_ONLY}.")
    name, description = tool.get("name"), tool.get("description")
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        allowed = "1 to 64 letters, digits, underscores, hyphens and dots"
        raise InvalidValue(f"{path}.name", f"{path}.name must be {allowed}.")
    if description is not None and not isinstance(description, str):
        raise InvalidValue(f"{path}.description", f"{path}.description must be a string.")
    strict = tool.get("strict")
    if strict is not None and type(strict) is not bool:
        raise InvalidValue(f"{path}.strict", f"{path}.strict must be true or false.")
    parameters = _read_parameters(tool.get("parameters"), f"{path}.parameters")
    return Tool(
        name=name,
        description=description or "",
        parameters=parameters,
        is_strict=bool(strict),
        param=f"{path}.parameters",
    )


def _read_parameters(schema: Any, path: str) -> dict[str, Any]:
    if schema is None or schema == {}:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise InvalidValue(path, f"{path} must be a JSON schema of type object.")
    return schema


def _read_choice(choice: Any, names: list[str]) -> tuple[CallMode, tuple[str, ...]]:
    """Give how tools may be used, and which, where not all may be."""
    if choice is None:
        return CallMode.AUTO, ()
    if isinstance(choice, str):
        if choice not in tuple(CallMode):
            message = f"tool_choice must be one of {', '.join(CallMode)}, or an object."
            raise InvalidValue("tool_choice", message)
        return CallMode(choice), ()
    if not isinstance(choice, dict):
        raise InvalidValue("tool_choice", "tool_choice must be a string or an object.")
    match choice.get("type"):
        case "function":
            return CallMode.REQUIRED, (_read_chosen(choice, "tool_choice", names),)
        case "allowed_tools":
            return _read_allowed(choice, names)
        case str(kind):
            message = f"tool_choice.type is {kind!r:.40}: {_FUNCTIONS_ONLY}."
            raise NotSupported("tool_choice.type", message)
    raise InvalidValue("tool_choice.type", "tool_choice.type must be function or allowed_tools.")


def _read_allowed(choice: dict[str, Any], names: list[str]) -> tuple[CallMode, tuple[str, ...]]:
    mode, tools = choice.get("mode"), choice.get("tools")
    if mode not in ("auto", "required"):
        raise InvalidValue("tool_choice.mode", "tool_choice.mode must be auto or required.")
    if not isinstance(tools, list) or not tools:
        raise InvalidValue("tool_choice.tools", "tool_choice.tools must be a list of tools.")
    chosen = (_read_chosen(tool, f"tool_choice.tools[{i}]", names) for i, tool in enumerate(tools))
    return CallMode(mode), tuple(dict.fromkeys(chosen))


def _read_chosen(choice: Any, path: str, names: list[str]) -> str:
    name = choice.get("name") if isinstance(choice, dict) else None
    if name not in names:
        raise InvalidValue(f"{path}.name", f"{path}.name must be the name of one of the tools.")
    return str(name)


def _echo(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description or None,
        "parameters": tool.parameters,
        "strict": tool.is_strict,
    }
