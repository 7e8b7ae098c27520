"""A tiny model with random weights, loaded once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from tests.inference.backend.jobs import make_spec


@pytest.fixture(scope="module")
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    """The tiny model."""
    model = load_model(make_spec(tiny_model_path), lambda _: None)
    yield model
    model.close()


@pytest.fixture
def backend(model: LlamaModel, tiny_model_path: Path) -> Iterator[LlamaBackend]:
    """A fresh context of the tiny model."""
    backend = LlamaBackend(model, make_spec(tiny_model_path).profile)
    yield backend
    backend.close()
