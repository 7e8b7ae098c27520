"""Weights are converted once, in a process of its own, and nothing half done is left."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from inference.gguf.examine import inspect_files
from inference.gguf.weights import convert_shape
from inference.protocol.errors import EngineError
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.worker.conversion import KEEP_SECONDS, convert_weights, needs_conversion


def make_spec(path: Path | str, weight_type: str = "q8_0", sha256: str = "a" * 64) -> ReplicaSpec:
    """Give a replica that wants other weights."""
    return ReplicaSpec(
        replica="r",
        deployment="d",
        model="m",
        kind=ModelKind.CHAT,
        files=(str(path),),
        sha256=(sha256,),
        profile=RuntimeProfile(weight_type=weight_type),
    )


@pytest.mark.parametrize("weight_type", ["q8_0", "f16"])
def test_a_converted_model_is_as_large_as_estimated(
    weight_type: str, smollm2_path: Path, tmp_path: Path
) -> None:
    converted = convert_weights(make_spec(smollm2_path, weight_type), tmp_path)

    before, after = inspect_files([smollm2_path]), inspect_files([Path(converted.files[0])])
    assert after.quantization.lower() == weight_type
    assert (after.num_params, after.vocab_hash) == (before.num_params, before.vocab_hash)
    expected = convert_shape(before.memory, weight_type)
    assert expected.weights_bytes == after.memory.weights_bytes
    assert [layer.weights_bytes for layer in expected.layers] == [
        layer.weights_bytes for layer in after.memory.layers
    ]
    unknown = msgspec.structs.replace(
        before.memory,
        layers=tuple(
            msgspec.structs.replace(layer, matrix_bytes=0, matrix_elements=0)
            for layer in before.memory.layers
        ),
    )
    assert convert_shape(unknown, weight_type).weights_bytes > expected.weights_bytes


def test_a_converted_file_is_used_again_until_nobody_wants_it(
    tiny_model_path: Path, tmp_path: Path
) -> None:
    first = Path(convert_weights(make_spec(tiny_model_path), tmp_path).files[0])
    written = first.stat().st_ino
    assert convert_weights(make_spec(tiny_model_path), tmp_path).files == (str(first),)
    assert first.stat().st_ino == written

    old = first.stat().st_mtime - KEEP_SECONDS - 60
    os.utime(first, (old, old))
    (first.parent / "left.1.partial").write_bytes(b"half")
    other = Path(convert_weights(make_spec(tiny_model_path, "f16"), tmp_path).files[0])
    assert sorted(path.name for path in first.parent.iterdir()) == sorted([other.name, "lock"])


def test_what_cannot_be_converted_says_why(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(EngineError, match=r"could not be converted to q8_0: .*\w"):
        convert_weights(make_spec(damaged), tmp_path)
    assert [path.name for path in (tmp_path / "converted").iterdir()] == ["lock"]


def test_a_full_disk_stays_usable(tiny_model_path: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from inference.worker import convert; convert.RESERVED_BYTES = 1 << 62; "
        "sys.exit(convert.main(sys.argv[1:]))"
    )
    target = tmp_path / "target.gguf"
    command = [sys.executable, "-c", script, "q8_0", str(target), str(tiny_model_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.strip() == "only 0 MiB of the disk are free for it"
    assert not list(tmp_path.iterdir())


def test_only_real_weights_are_converted() -> None:
    assert needs_conversion(make_spec("model.gguf"))
    assert not needs_conversion(make_spec("model.gguf", ""))
    assert not needs_conversion(make_spec("fake:3"))
