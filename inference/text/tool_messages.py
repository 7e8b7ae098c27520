"""Tools, calls and results in plain words, for chat templates that know nothing of them."""

import json
import re
from typing import Any

TOOL_PREAMBLE = (
    "You may call these functions. To call one, answer only with a JSON object "
    '{"name": <function name>, "arguments": <object>}. Functions:\n'
)
_RESULT_ROLE = re.compile(r"""['"](?:tool|ipython|observation)['"]""")
Message = dict[str, Any]


def fit_messages(
    template: str, messages: list[Message], tools: list[Message]
) -> tuple[list[Message], list[Message]]:
    """Put into words what a template does not know; give the messages, and the tools left for it.

    What a model calls without a template's help is told in the form that the preamble asks for.
    """
    if "tool_calls" not in template:
        messages = [_call_in_words(message) for message in messages]
        if not _RESULT_ROLE.search(template):
            messages = _results_in_words(messages)
    if tools and "tools" not in template:
        return _tools_in_words(messages, tools), []
    return messages, tools


def _tools_in_words(messages: list[Message], tools: list[Message]) -> list[Message]:
    """Describe tools in the system message."""
    lines = [json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools]
    text = TOOL_PREAMBLE + "\n".join(lines)
    if messages and messages[0].get("role") == "system":
        return [messages[0] | {"content": [*_parts_of(messages[0]), text]}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _call_in_words(message: Message) -> Message:
    """Write the calls of a message behind its words."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    lines = []
    for call in calls:
        function = call["function"]
        name, arguments = json.dumps(function["name"]), function["arguments"] or "{}"
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        lines.append(f'{{"name": {name}, "arguments": {arguments}}}')
    told = {key: value for key, value in message.items() if key != "tool_calls"}
    return told | {"content": [*_parts_of(message), "\n".join(lines)]}


def _results_in_words(messages: list[Message]) -> list[Message]:
    """Let the user tell the results of calls.

    Some templates refuse two turns of the user in a row: results share one, and what the user says
    next is in it too.
    """
    told: list[Message] = []
    may_join = False
    for message in messages:
        is_result = message.get("role") == "tool"
        parts = _parts_of(message)
        if is_result:
            parts = [f"Result of {message.get('name') or 'the function'}:", *parts]
        if may_join and message.get("role") in ("tool", "user"):
            told[-1] = told[-1] | {"content": [*_parts_of(told[-1]), *parts]}
        else:
            told.append({"role": "user", "content": parts} if is_result else message)
        may_join = is_result
    return told


def _parts_of(message: Message) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else [content] if content else []
