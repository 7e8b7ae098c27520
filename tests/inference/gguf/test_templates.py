"""Chat templates that reach for attributes or files, or are monstrous, are refused."""

import pytest

from tests.inference.gguf.builder import STRING, Draft, scalar
from tests.inference.gguf.judging import code_of


def judge_template(source: str, key: str = "tokenizer__chat_template") -> str:
    """Give the verdict on the good file with this chat template."""
    return code_of(Draft().with_keys(**{key: scalar(STRING, source)}).pack())


@pytest.mark.parametrize(
    "source",
    [
        "{% for message in messages %}{{ message['content'] }}{% break %}{% endfor %}",
        "{% generation %}{{ x }}{% endgeneration %}",
        "{% set _ = messages.pop() %}{{ messages | map(attribute='role') | join }}",
        "{{ raise_exception('no') }}",
    ],
)
def test_usual_templates_pass(source: str) -> None:
    assert judge_template(source) == "ok"


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ x._secret }}",
        "{{ x['__class__'] }}",
        "{{ x | attr('y') }}",
        "{{ x | map(attribute='__class__') }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% extends 'x' %}",
        "{% if %}",
        "{% for a in b %}" * 5 + "{% endfor %}" * 5,
        "{{ x }}" * 20_000,
        "x" * (256 * 1024 + 1),
        "{{ " + "(" * 5000 + "x" + ")" * 5000 + " }}",
    ],
)
def test_dangerous_templates_are_refused(source: str) -> None:
    assert judge_template(source) == "template"


def test_named_templates_are_checked_too() -> None:
    assert judge_template("{{ x.__y__ }}", "tokenizer__chat_template__tool_use") == "template"


def test_a_template_that_is_no_text_is_refused() -> None:
    draft = Draft().with_keys(tokenizer__chat_template=scalar(STRING, b"\xff"))
    assert code_of(draft.pack()) == "template"
