"""Files that cannot be loaded, and one that kills what loads it, beside streams that go on."""

import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil

from inference.protocol.replicas import ReplicaSpec, ReplicaState
from tests.chaos.lab import Lab, make_specs, open_lab
from tests.chaos.tally import Tally
from tests.chaos.trial import Size, Trial
from tests.chaos.trials.replicas import judge_jobs
from tests.inference.worker.replicas import make_spec
from tests.processes import ROOT, child_environment
from tests.tiny_model import write_tiny_model

IMPORT_PROGRAM = """
import json
from pathlib import Path
from django.core.exceptions import ValidationError
from models_registry.models import ModelVersion
from models_registry.services.importing import import_model_files
try:
    import_model_files(paths=[Path({path!r})], slug={slug!r})
except ValidationError as error:
    version = ModelVersion.objects.get(model__slug={slug!r})
    print(json.dumps([error.code, version.state, version.reason]))
"""


def write_deadly_model(path: Path) -> None:
    """Write a model that is in order, but whose vocabulary lacks the bytes its tokenizer needs."""
    write_tiny_model(path, byte_values=())


async def kill_probe(tally: Tally, size: Size) -> None:
    """A file that ends the process that tries it: it is rejected, and nothing else is touched."""
    async with open_lab() as lab:
        lab.start_gateways(1)
        path = lab.folder / "deadly.gguf"
        write_deadly_model(path)
        pids = [lab.status(name).pid for name in ("chat-1", "chat-2")]
        for number in range(size.rounds):
            jobs = await lab.run_jobs(8, num_tokens=600)
            told = await asyncio.to_thread(_import, lab, path, f"deadly-{number}")
            code, state, reason = told or ("", "", "")
            tally.judge((code, state) == ("probe_crashed", "rejected"), f"{code} {state} {reason}")
            tally.strike(code == "probe_crashed")
            judge_jobs(lab, jobs, tally)
        still = [lab.status(name).pid for name in ("chat-1", "chat-2")]
        tally.judge(pids == still, "a replica ended with the probe")


def _import(lab: Lab, path: Path, slug: str) -> list[str] | None:
    assert lab.home is not None
    program = IMPORT_PROGRAM.format(path=str(path), slug=slug)
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "shell", "--verbosity=0", "-c", program],
        env=child_environment(LLAMERO_HOME=str(lab.home.folder)),
        capture_output=True,
        check=False,
        timeout=120,
    )
    return msgspec.json.decode(done.stdout, type=list[str]) if done.stdout else None


async def fail_to_load(tally: Tally, size: Size) -> None:
    """Replicas whose files are missing, no models, cut off or others, or whose draft is none."""
    good = make_specs()
    async with open_lab(*good) as lab:
        bad = _make_bad_specs(lab.folder)
        for _ in range(size.rounds):
            jobs = await lab.run_jobs(16, num_tokens=900)
            lab.want(*good, *bad)
            for spec in bad:
                status = await asyncio.to_thread(_wait_for_failure, lab, spec.replica)
                tally.judge(bool(status), f"{spec.replica} gave no reason for its failure")
                tally.strike(bool(status))
            judge_jobs(lab, jobs, tally)
            # Those that were told to go leave nothing behind.
            lab.want(*good)
            await asyncio.sleep(2)
            node = psutil.Process(lab.nodes[-1].process.pid)
            num_left = len([one for one in node.children() if one.status() != "zombie"])
            tally.judge(num_left == len(good), f"{num_left} processes are left of {len(good)}")


def _make_bad_specs(folder: Path) -> list[ReplicaSpec]:
    garbage, cut, whole = (folder / name for name in ("garbage", "cut.gguf", "whole.gguf"))
    write_tiny_model(whole)
    garbage.write_bytes(b"GGUF" + bytes(4096))
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    drafted = msgspec.structs.replace(make_spec().profile, speculation="draft")
    files = {"missing": folder / "none.gguf", "garbage": garbage, "cut": cut}
    specs = [make_spec(name, files=(str(path),)) for name, path in files.items()]
    specs.append(make_spec("wrong", files=(str(whole),), sha256=("0" * 64,)))
    no_draft = {"profile": drafted, "draft_files": (str(garbage),)}
    specs.append(make_spec("no-draft", files=(str(whole),), **no_draft))
    return [msgspec.structs.replace(spec, deployment=f"bad-{spec.replica}") for spec in specs]


def _wait_for_failure(lab: Lab, replica: str) -> str:
    """Give the reason that a replica is not there, once there is one."""

    def reason() -> str:
        status = lab.client.registry.get(replica)
        if status is None or status.state is ReplicaState.READY:
            return ""
        return status.reason if status.num_failures else ""

    lab.wait(reason, seconds=30)
    return reason()


TRIALS = (
    Trial("P14", "a file that kills the probe, beside streams", kill_probe, 3),
    Trial("P24", "five loads that fail, beside streams", fail_to_load, 1),
)
