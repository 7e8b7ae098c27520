"""The llm tool, told of a model by its file for OpenAI-compatible servers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODELS = """
- model_id: here
  model_name: {model}
  api_base: {url}/v1
  api_key_name: here
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    text = MODELS.format(model=os.environ["LLAMERO_CHAT"], url=os.environ["LLAMERO_URL"])
    (tmp_path / "extra-openai-models.yaml").write_text(text)
    return tmp_path


def run(home: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "llm", *arguments]
    environment = os.environ | {"LLM_USER_PATH": str(home)}
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=100
    ).stdout


@pytest.mark.parametrize("options", [(), ("--no-stream",)])
def test_a_prompt_is_answered(home: Path, options: tuple[str, ...]) -> None:
    key = ("--key", os.environ["LLAMERO_KEY"])
    limits = ("-o", "max_tokens", "12", "-o", "temperature", "0")
    assert run(home, "-m", "here", *key, *limits, *options, "Say hello.").strip()


def test_the_model_is_listed(home: Path) -> None:
    assert "here" in run(home, "models")
