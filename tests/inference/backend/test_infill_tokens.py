"""What a vocabulary has for filling gaps, and what ends an answer, is among a model's facts."""

from pathlib import Path

import pytest

from inference.backend.llama_model import load_model
from inference.protocol.replicas import ModelFacts, ModelKind, ReplicaSpec
from tests.tiny_model import write_tiny_model

NAMES = {
    "prefix": "<|fim_prefix|>",
    "suffix": "<|fim_suffix|>",
    "middle": "<|fim_middle|>",
    "repository": "<|repo_name|>",
    "file": "<|file_sep|>",
}


def read_facts(path: Path, controls: tuple[str, ...]) -> ModelFacts:
    write_tiny_model(path, controls=controls)
    spec = ReplicaSpec(
        replica="r",
        deployment="d",
        model="m",
        kind=ModelKind.CHAT,
        files=(str(path),),
        sha256=("",),
    )
    model = load_model(spec, lambda _: None)
    try:
        return model.facts()
    finally:
        model.close()


def test_tokens_are_found_by_their_names(tmp_path: Path) -> None:
    facts = read_facts(tmp_path / "m.gguf", tuple(NAMES.values()))
    first = facts.num_vocab - len(NAMES)
    found = [getattr(facts.infill, name) for name in NAMES]
    assert found == list(range(first, facts.num_vocab))
    assert facts.infill.is_complete
    # Behind the end of text llama.cpp takes those that begin another file for ends.
    assert facts.end_tokens == (2, facts.infill.repository, facts.infill.file)


@pytest.mark.parametrize("controls", [(), tuple(NAMES.values())[:2]])
def test_a_part_of_them_is_not_enough(tmp_path: Path, controls: tuple[str, ...]) -> None:
    assert not read_facts(tmp_path / "m.gguf", controls).infill.is_complete
