"""One file is recognised by its header, also while it is still being sent."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inference.gguf.build import engine_build
from inference.gguf.examine import inspect_file, probe_adapter
from inference.gguf.recognise import FileFacts, FilePart, recognise_file
from inference.gguf.verdict import GgufRejected
from tests.inference.gguf.builder import BOOL, STRING, UINT16, Draft, Tensor, scalar
from tests.tiny_lora import write_lora

GOOD = Draft().pack()
CLIP = {
    "general.architecture": scalar(STRING, "clip"),
    "clip.has_vision_encoder": scalar(BOOL, True),
}


@pytest.fixture
def recognise(tmp_path: Path) -> Callable[..., FileFacts]:
    """Recognise bytes in this process."""

    def look(contents: bytes, size_bytes: int | None = None) -> FileFacts:
        path = tmp_path / "file"
        path.write_bytes(contents)
        fd = os.open(path, os.O_RDONLY)
        try:
            return recognise_file(fd, len(contents) if size_bytes is None else size_bytes)
        finally:
            os.close(fd)

    return look


def test_parts_of_models(recognise: Callable[..., FileFacts], tmp_path: Path) -> None:
    facts = recognise(GOOD)
    assert (facts.part, facts.architecture, facts.num_shards) == (FilePart.WEIGHTS, "llama", 1)
    write_lora(tmp_path / "lora", seed=1)
    assert recognise((tmp_path / "lora").read_bytes()).part is FilePart.ADAPTER
    assert recognise(Draft(keys=CLIP).pack()).part is FilePart.PROJECTOR
    split = {"split.no": scalar(UINT16, 1), "split.count": scalar(UINT16, 3)}
    later = recognise(Draft(keys=split).pack())
    assert (later.part, later.shard, later.num_shards) == (FilePart.WEIGHTS, 1, 3)


@pytest.mark.parametrize(
    ("draft", "code"),
    [
        (Draft(keys=CLIP, tensors=()), "tensor_count"),
        (Draft(keys={"general.architecture": scalar(STRING, "clip")}), "hparam"),
        (Draft().with_keys(general__type=scalar(STRING, "mmproj")), "architecture"),
        (Draft().with_keys(general__type=scalar(STRING, "adapter")), "unsupported_kind"),
        (Draft().with_keys(general__architecture=scalar(STRING, "nope")), "architecture"),
        (Draft().with_keys(split__count=scalar(UINT16, 2000)), "shards_incomplete"),
        (Draft().with_keys(split__no=scalar(STRING, "0")), "split"),
        (replace(Draft(), tensors=()), "tensor_count"),
        (replace(Draft(), tensors=(Tensor(offset=32),)), "tensor_offset"),
    ],
)
def test_what_cannot_be_one(recognise: Callable[..., FileFacts], draft: Draft, code: str) -> None:
    with pytest.raises(GgufRejected) as caught:
        recognise(draft.pack())
    assert caught.value.code == code


def test_a_beginning_is_judged_as_far_as_it_goes(recognise: Callable[..., FileFacts]) -> None:
    verdicts = set()
    for length in range(1, len(GOOD), 7):
        try:
            verdicts.add(recognise(GOOD[:length], len(GOOD)).part.value)
        except GgufRejected as error:
            verdicts.add(error.code)
    # Never a refusal: either it is known already, or more has to come.
    assert verdicts == {"shrank", "weights"}
    with pytest.raises(GgufRejected, match="web page"):
        recognise(b"<html>", 10**9)


def test_a_process_of_its_own_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "part"
    path.write_bytes(GOOD[:100])
    assert inspect_file(path, len(GOOD)) is None
    path.write_bytes(GOOD[:-1])
    facts = inspect_file(path, len(GOOD))
    assert facts is not None
    assert facts.num_tensors == 2
    with pytest.raises(GgufRejected) as caught:
        inspect_file(path, len(GOOD) - 1)
    assert caught.value.code == "truncated"


def test_adapters_are_probed_beside_their_model(tiny_model_path: Path, tmp_path: Path) -> None:
    write_lora(tmp_path / "good", seed=1)
    probe_adapter([tiny_model_path], tmp_path / "good")
    write_lora(tmp_path / "wide", seed=1, num_embd=128)
    told = r"beside its model: .*tensor 'blk\.0\.attn_\w+\.weight' has incorrect shape"
    with pytest.raises(GgufRejected, match=told) as caught:
        probe_adapter([tiny_model_path], tmp_path / "wide")
    assert caught.value.code == "probe_failed"


def test_the_build_of_the_engine_has_a_name() -> None:
    assert engine_build().startswith("0.3.")
