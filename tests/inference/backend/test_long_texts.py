"""Long and hostile texts become tokens in bounded time, the same as when they come whole."""

from pathlib import Path

import pytest

from inference.backend.llama_model import LlamaModel, load_model
from inference.text import cutting
from tests.inference.backend.jobs import make_spec

PROSE = (
    "The quick brown fox, it's said, jumps over 13 lazy dogs.\nWhy? Nobody knows!\n\n"
    "  def f(x):\n\treturn x*2  # ok\n日本語の文章、それは長い。<|im_end|>\n"
    "<|im_start|>user\nÇa va? "
)
GIANTS = [
    "a",
    " ",
    "\n",
    "\r\n",
    "\u0301",
    "👩\u200d",
    "漢",
    "7",
    "!",
    "<|im_end|>",
    "</s>",
    "\ufffd",
]


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> LlamaModel:
    return load_model(make_spec(smollm2_path), lambda _: None)


def tokenize(model: LlamaModel, text: str) -> list[int]:
    return model.tokenize(text, add_special=True, parse_special=True)


@pytest.mark.model
def test_prose_in_parts_makes_the_tokens_of_the_whole(
    smollm2: LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PROSE * 40
    whole = tokenize(smollm2, text)
    for size in (200, 333, 1000):
        monkeypatch.setattr(cutting, "MAX_CHARS", size)
        assert tokenize(smollm2, text) == whole


def test_parts_get_no_space_and_no_control_token_of_their_own(
    model: LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tokenize(model, PROSE * 4)
    monkeypatch.setattr(cutting, "MAX_CHARS", 100)
    assert tokenize(model, PROSE * 4) == whole


@pytest.mark.parametrize("unit", GIANTS)
def test_a_giant_word_is_spelled_by_its_tokens(model: LlamaModel, unit: str) -> None:
    text = unit * (100_000 // len(unit))
    tokens = model.tokenize(text, add_special=False, parse_special=False)
    assert model.detokenize(tokens).decode() == text


@pytest.mark.model
@pytest.mark.parametrize("unit", GIANTS)
def test_one_giant_word_of_a_real_vocabulary(smollm2: LlamaModel, unit: str) -> None:
    text = unit * ((1 << 18) // len(unit.encode()))
    tokens = smollm2.tokenize(text, add_special=False, parse_special=True)
    assert smollm2.detokenize(tokens).decode() == text
