"""What models of each style write: words, and then the calls ONE or TWO."""

ONE = [("get_weather", '{"city": "Oslo"}')]
TWO = [*ONE, ("now", "{}")]
DEEPSEEK = "<｜tool▁{}｜>".format  # noqa: RUF001 - the marks are spelled so

# What each style writes: words that may stand before, the calls, and whether it was two.
WRITTEN = (
    (
        "hermes",
        (
            'Sure.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'
            "</tool_call>\n"
            '<tool_call>\n{"arguments": {}, "name": "now"}\n</tool_call>'
        ),
        TWO,
    ),
    (
        "qwen-coder",
        (
            "Sure.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
            "</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>"
        ),
        TWO,
    ),
    (
        "seed",
        (
            "Sure.<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n"
            "</function>\n</seed:tool_call>"
        ),
        ONE,
    ),
    (
        "glm",
        (
            "Sure.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n"
            "</tool_call>\n<tool_call>now\n</tool_call>"
        ),
        TWO,
    ),
    (
        "minimax",
        (
            'Sure.\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo'
            '</parameter>\n</invoke>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>'
        ),
        TWO,
    ),
    (
        "mistral",
        (
            'Sure.[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}, '
            '"id": "a1b2c3d4e"}, {"name": "now", "arguments": {}, "id": "a1b2c3d4f"}]'
        ),
        TWO,
    ),
    (
        "mistral-named",
        (
            'Sure.[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Oslo"}'
            "[TOOL_CALLS]now[ARGS]{}"
        ),
        TWO,
    ),
    (
        "deepseek-fenced",
        (
            f"Sure.{DEEPSEEK('calls▁begin')}{DEEPSEEK('call▁begin')}function{DEEPSEEK('sep')}"
            f'get_weather\n```json\n{{"city": "Oslo"}}\n```{DEEPSEEK("call▁end")}\n'
            f"{DEEPSEEK('call▁begin')}function{DEEPSEEK('sep')}now\n```json\n{{}}\n```"
            f"{DEEPSEEK('call▁end')}{DEEPSEEK('calls▁end')}"
        ),
        TWO,
    ),
    (
        "deepseek",
        (
            f"Sure.{DEEPSEEK('calls▁begin')}{DEEPSEEK('call▁begin')}get_weather{DEEPSEEK('sep')}"
            f'{{"city": "Oslo"}}{DEEPSEEK("call▁end")}{DEEPSEEK("call▁begin")}now'
            f"{DEEPSEEK('sep')}{{}}"
            f"{DEEPSEEK('call▁end')}{DEEPSEEK('calls▁end')}"
        ),
        TWO,
    ),
    (
        "kimi",
        (
            "Sure.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
            '<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_call_begin|>'
            "functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
            "<|tool_calls_section_end|>"
        ),
        TWO,
    ),
    (
        "command-r7b",
        (
            'Sure.<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", '
            '"parameters": {"city": "Oslo"}},\n    {"tool_call_id": "1", "tool_name": "now", '
            '"parameters": {}}\n]<|END_ACTION|>'
        ),
        TWO,
    ),
    (
        "command-r",
        (
            'Sure.\nAction: ```json\n[\n    {"tool_name": "get_weather", "parameters": '
            '{"city": "Oslo"}}\n]```'
        ),
        ONE,
    ),
    (
        "phi",
        (
            'Sure.<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}, '
            '{"name": "now", "arguments": {}}]<|/tool_call|>'
        ),
        TWO,
    ),
    (
        "granite",
        ('Sure.<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'),
        ONE,
    ),
    (
        "lfm2",
        (
            'Sure.<|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'
            "<|tool_call_end|>"
        ),
        ONE,
    ),
    (
        "lfm2-python",
        'Sure.<|tool_call_start|>[get_weather(city="Oslo"), now()]<|tool_call_end|>',
        TWO,
    ),
    ("python", "[get_weather(city='Oslo'), now()]", TWO),
    (
        "nemotron",
        ('Sure.<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</TOOLCALL>'),
        ONE,
    ),
    (
        "jamba",
        ('Sure.<tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</tool_calls>'),
        ONE,
    ),
    ("functools", 'Sure. functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]', ONE),
    (
        "functionary",
        ('Sure.<function=get_weather>{"city": "Oslo"}</function><function=now>{}</function>'),
        TWO,
    ),
    ("llama", '{"type": "function", "name": "get_weather", "parameters": {"city": "Oslo"}}', ONE),
    (
        "json",
        (
            '{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'
            '{"name": "now", "arguments": {}}'
        ),
        TWO,
    ),
    (
        "harmony",
        (
            "<|channel|>commentary<|message|>Sure.<|end|><|start|>assistant<|channel|>commentary "
            'to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}'
        ),
        ONE,
    ),
)
