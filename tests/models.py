"""The real models of the tests: fetched once, by the code that fetches the demo's."""

import os
import tempfile
from pathlib import Path

from models_registry.demo.models import DEMO_MODELS, fetch_demo_file
from tests.processes import ROOT

# Kept between runs; LLAMERO_TEST_MODELS chooses another folder.
FOLDER = Path(os.environ.get("LLAMERO_TEST_MODELS") or ROOT / ".cache" / "test-models")


def fetch_smollm2() -> Path:
    """Give SmolLM2-135M-Instruct."""
    return fetch("smollm2-135m-instruct")


def fetch_minilm() -> Path:
    """Give all-MiniLM-L6-v2."""
    return fetch("all-minilm-l6-v2")


def fetch(slug: str) -> Path:
    """Give a demo model's file; several test processes may ask at once."""
    target = FOLDER / f"{slug}.gguf"
    if target.exists():
        return target
    FOLDER.mkdir(parents=True, exist_ok=True)
    demo = next(one for one in DEMO_MODELS if one.slug == slug)
    with tempfile.TemporaryDirectory(dir=FOLDER) as draft:
        fetch_demo_file(demo, Path(draft) / slug).replace(target)
    return target
