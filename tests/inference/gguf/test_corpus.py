"""Files of real models, whole and mutated, through the processes that judge them."""

import random
import struct
import time
from pathlib import Path

import pytest

from inference.gguf.examine import inspect_files, probe_files
from inference.gguf.verdict import GgufRejected
from tests.inference.gguf.judging import code_of
from tests.models import FOLDER

NASTY = (0, 1, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1)
LIMIT_SECONDS = 30.0


def mutate(data: bytearray, rng: random.Random, reach: int) -> None:
    """Change some bytes of a file's first ``reach``: flip, plant, cut, double or swap."""
    place = rng.randrange(reach - 16)
    match rng.randrange(6):
        case 0 | 1:
            data[place] ^= 1 << rng.randrange(8)
        case 2:
            data[place : place + 8] = struct.pack("<Q", rng.choice(NASTY))
        case 3:
            data[place : place + 4] = struct.pack("<I", rng.choice(NASTY) & 0xFFFFFFFF)
        case 4:
            del data[place : place + rng.randrange(1, 16)]
        case 5:
            data[place:place] = data[place : place + rng.randrange(1, 16)]


def make_mutants(whole: bytes, number: int, seed: int) -> list[bytes]:
    """Make mutants: most in the header, some in the data, some cut off."""
    rng, mutants = random.Random(seed), []
    for _ in range(number):
        data = bytearray(whole)
        reach = len(data) if rng.random() < 0.2 else min(len(data), 6000)
        for _ in range(rng.randint(1, 3)):
            mutate(data, rng, reach)
        if rng.random() < 0.05:
            del data[rng.randrange(len(data)) :]
        mutants.append(bytes(data))
    return mutants


def judge_whole(path: Path) -> str:
    """Give the verdict of inspector and probe, as an import would."""
    began = time.monotonic()
    try:
        inspect_files([path])
        probe_files([path])
        code = "ok"
    except GgufRejected as error:
        assert error.reason
        code = error.code
    assert time.monotonic() - began < LIMIT_SECONDS
    return code


def test_mutants_of_a_model_that_loads_get_a_verdict(tiny_model_path: Path) -> None:
    codes = [code_of(one) for one in make_mutants(tiny_model_path.read_bytes(), 60, seed=1)]
    assert len(set(codes)) > 5


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_mutants_go_through_both_processes(
    tiny_model_path: Path, tmp_path: Path
) -> None:
    path, codes = tmp_path / "mutant.gguf", []
    for mutant in make_mutants(tiny_model_path.read_bytes(), 1000, seed=2):
        path.write_bytes(mutant)
        codes.append(judge_whole(path))
    # The inspector itself never dies; what kills the probe is a verdict, and kills nothing else.
    assert "inspector_crashed" not in codes
    assert len(set(codes)) > 10
    assert codes.count("ok") < len(codes) / 2
    print({code: codes.count(code) for code in sorted(set(codes))})


@pytest.mark.model
def test_no_real_header_is_refused(smollm2_path: Path, minilm_path: Path) -> None:
    """Whatever real models the tests' folder has, the fetched ones among them."""
    for path in {smollm2_path, minilm_path, *FOLDER.glob("*.gguf")}:
        assert inspect_files([path]).architecture, path
