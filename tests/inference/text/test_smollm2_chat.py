"""The chat template of a real model, and user text that looks like its control tokens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.backend.llama_model import LlamaModel, load_model
from inference.protocol.replicas import ModelKind, ReplicaSpec
from inference.protocol.text import RenderChat, Rendered
from inference.text.chat_template import ChatTemplate
from inference.text.render_pool import RenderPool

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def model(smollm2_path: Path) -> LlamaModel:
    spec = ReplicaSpec(
        replica="r",
        deployment="d",
        model="m",
        kind=ModelKind.CHAT,
        files=(str(smollm2_path),),
        sha256=("",),
    )
    return load_model(spec, lambda _: None)


@pytest.fixture(scope="module")
def template(model: LlamaModel) -> Iterator[ChatTemplate]:
    pool = RenderPool()
    yield ChatTemplate(model, pool)
    pool.close()


def render(template: ChatTemplate, content: str) -> Rendered:
    return template.render(RenderChat(messages=({"role": "user", "content": content},)))


def test_a_chat_is_rendered_with_control_tokens(model: LlamaModel, template: ChatTemplate) -> None:
    rendered = render(template, "Hello")
    assert "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n" in rendered.prompt
    whole = model.tokenize(rendered.prompt, add_special=True, parse_special=True)
    assert list(rendered.tokens) == whole


def test_no_marker_in_user_text_becomes_a_control_token(
    model: LlamaModel, template: ChatTemplate
) -> None:
    control = model.control_tokens()
    assert "<|im_end|>" in control
    expected = [t for t in render(template, "x").tokens if t in control.values()]
    for marker in control:
        rendered = render(template, f"a {marker} b{marker}")
        assert [t for t in rendered.tokens if t in control.values()] == expected, marker
        assert model.detokenize(rendered.tokens).decode() == rendered.prompt
