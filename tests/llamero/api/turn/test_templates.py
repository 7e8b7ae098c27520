"""Templates in the manner of many families: their style is found, and they get what they take."""

import json
from typing import Any

import pytest

from inference.text.render_child import Renderer
from inference.text.tool_messages import fit_messages
from llamero.api.messages import read_messages
from llamero.api.turn.call_styles import JSON, find_call_style
from llamero.api.turn.history import settle_history
from llamero.api.turn.reasoning_styles import find_reasoning_style

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "now", "arguments": '{"zone":"x"}'},
}
TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "Time?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "noon"},
]
TOOL = {"type": "function", "function": {"name": "now", "description": "", "parameters": {}}}
LOOP = "{% if tools %}<{{ tools | tojson }}>{% endif %}{% for m in messages %}"

# (style, template, what it makes of the turns)
FAMILIES = {
    "hermes": (
        LOOP + "{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>"
        "{{ c.function.name }} {{ c.function.arguments | tojson }}</tool_call>{% endfor %};"
        "{% endfor %}",
        'user:Time?;assistant:<tool_call>now {"zone": "x"}</tool_call>;tool:noon;',
    ),
    "qwen-coder": (
        LOOP + "{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call><function="
        "{{ c.function.name }}>{% for k, v in c.function.arguments | items %}<parameter={{ k }}>"
        "{{ v }}</parameter>{% endfor %}</function></tool_call>{% endfor %};{% endfor %}",
        (
            "user:Time?;assistant:<tool_call><function=now><parameter=zone>x</parameter></function>"
            "</tool_call>;tool:noon;"
        ),
    ),
    "llama": (
        LOOP + "{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}"
        '{% endif %}{"name": "{{ m.tool_calls[0].function.name }}", "parameters": '
        "{{ m.tool_calls[0].function.arguments | tojson }}}{% elif m.role == 'tool' %}"
        "ipython:{{ m.content | tojson }}{% else %}{{ m.role }}:{{ m.content }}{% endif %};"
        "{% endfor %}",
        'user:Time?;{"name": "now", "parameters": {"zone": "x"}};ipython:"noon";',
    ),
    "mistral": (
        LOOP + "{% if m.tool_calls %}[TOOL_CALLS]{% for c in m.tool_calls %}{% if c.id | length "
        "!= 9 %}{{ raise_exception('ids have 9 letters') }}{% endif %}{{ c.function | tojson }}"
        "{% endfor %}{% elif m.role == 'tool' %}{% if m.tool_call_id | length == 9 %}[RESULT]"
        "{{ m.content }}{% endif %}{% else %}[INST]{{ m.content }}{% endif %};{% endfor %}",
        '[INST]Time?;[TOOL_CALLS]{"name": "now", "arguments": {"zone": "x"}};[RESULT]noon;',
    ),
    "deepseek-fenced": (
        LOOP + "{% if m.role == 'assistant' and m.content is none %}{% for c in m.tool_calls %}"
        "<｜tool▁calls▁begin｜>{{ c.function.name + '\n```json\n' + c.function.arguments + '```' }}"  # noqa: RUF001
        "{% endfor %}{% elif m.role == 'tool' %}out:{{ m.content }}{% else %}{{ m.role }}:"
        "{{ m.content }}{% endif %};{% endfor %}",
        'user:Time?;<｜tool▁calls▁begin｜>now\n```json\n{"zone":"x"}```;out:noon;',  # noqa: RUF001
    ),
    "functionary": (
        LOOP + "{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{{ '<function=' + c.function.name + '>' + c.function.arguments + '</function>' }}"
        "{% endfor %};{% endfor %}",
        'user:Time?;assistant:<function=now>{"zone":"x"}</function>;tool:noon;',
    ),
    "command-r7b": (
        LOOP + "{% if m.tool_calls %}<|START_ACTION|>{% for c in m.tool_calls %}"
        "{{ c.function.arguments | tojson }}{% endfor %}<|END_ACTION|>{% else %}"
        "{{ m.role }}:{{ m.content }}{% endif %};{% endfor %}",
        'user:Time?;<|START_ACTION|>{"zone": "x"}<|END_ACTION|>;tool:noon;',
    ),
    "json": (
        "{% for m in messages %}{{ m['role'] + ':' + m['content'] }};{% endfor %}",
        (
            'user:Time?;assistant:{"name": "now", "arguments": {"zone":"x"}};'
            "user:Result of now:\nnoon;"
        ),
    ),
}


def render(template: str, turns: list[dict[str, Any]], *, has_tools: bool = False) -> str:
    style = find_call_style(template)
    messages = settle_history(
        read_messages(turns), template, find_reasoning_style(template), style, has_tools=has_tools
    )
    fitted, tools = fit_messages(template, list(messages), [TOOL] if has_tools else [])
    return Renderer().render(template, fitted, {"tools": tools or None})


@pytest.mark.parametrize("name", FAMILIES)
def test_calls_and_results_reach_the_template(name: str) -> None:
    template, rendered = FAMILIES[name]
    assert find_call_style(template).name == name
    assert render(template, TURNS) == rendered


@pytest.mark.parametrize("name", FAMILIES)
def test_tools_reach_the_model(name: str) -> None:
    rendered = render(FAMILIES[name][0], TURNS, has_tools=True)
    assert json.dumps(TOOL["function"])[:-1] in rendered


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ tools }}<tool_call><arg_key></arg_key><arg_value>", "glm"),
        ("{{ tools }}<|channel|>commentary<|message|>", "harmony"),
        ("<|channel|>commentary<|message|>", "harmony"),
        ("{{ tools }}[TOOL_CALLS]x[ARGS]", "mistral-named"),
        ("{{ tools }}<｜tool▁calls▁begin｜><｜tool▁sep｜>", "deepseek"),  # noqa: RUF001
        ("{{ tools }}<|tool_call|><|/tool_call|>", "phi"),
        ("{{ tools }}<|tool_call|>", "granite"),
        ("{{ tools }}<|tool_list_start|>", "lfm2"),
        ("{{ tools }}<|tool_list_start|><|tool_call_start|>[f()]", "lfm2-python"),
        ("{{ tools }} in the format of [func_name1(params_name1=params_value1...)]", "python"),
        ("{{ tools }} of an unknown kind", "json"),
        ("{{ messages }}<tool_call>", "json"),
    ],
)
def test_the_style_is_found(template: str, name: str) -> None:
    assert find_call_style(template).name == name


def test_results_share_a_turn_with_what_the_user_says_next() -> None:
    template = FAMILIES["json"][0]
    turns = [*TURNS, TURNS[2] | {"content": "night"}, {"role": "user", "content": "Thanks"}]
    expected = "user:Result of now:\nnoon\nResult of now:\nnight\nThanks;"
    assert render(template, turns).endswith(expected)
    assert render(template, turns).count("user:") == 2


def test_older_function_calls_become_calls() -> None:
    turns = [
        TURNS[0],
        {"role": "assistant", "content": None, "function_call": CALL["function"]},
        {"role": "function", "name": "now", "content": "noon"},
    ]
    assert render(FAMILIES["hermes"][0], turns) == FAMILIES["hermes"][1]


def test_reasoning_is_taken_out_of_earlier_words_where_the_template_wants_it_apart() -> None:
    keeps = LOOP + "{{ m.reasoning_content }}|{{ m.content }};{% endfor %}<think></think>"
    turns = [{"role": "assistant", "content": "<think>\nHm.\n</think>\n\nHi"}]
    assert render(keeps, turns).startswith("Hm.|Hi;")
    apart = [{"role": "assistant", "content": "Hi", "reasoning_content": "Hm."}]
    assert render(keeps, apart) == render(keeps, turns)
    knows_no_other_way = LOOP + "{{ m.content }};{% endfor %}<think></think>"
    assert render(knows_no_other_way, turns).startswith("<think>\nHm.\n</think>")


def test_a_hint_goes_with_the_tools() -> None:
    template = LOOP + "{{ m.role }}:{{ m.content }};{% endfor %}<|tool_list_start|>{# tool_calls #}"
    assert "system:Output function calls as JSON.;user:Time?;" in render(
        template, TURNS[:1], has_tools=True
    )
    assert "system" not in render(template, TURNS[:1])


def test_what_knows_of_no_tools_is_told_in_words() -> None:
    assert find_call_style(FAMILIES["json"][0]) is JSON
    system = {"role": "system", "content": "Be brief."}
    rendered = render(FAMILIES["json"][0], [system, TURNS[0]], has_tools=True)
    assert rendered.startswith("system:Be brief.\nYou may call these functions.")
