"""Builders for backend tests: specs of GGUF files and jobs."""

from pathlib import Path
from typing import Any

from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.protocol.sampling import SamplingParams

GREEDY = SamplingParams(temperature=0)


def make_spec(
    path: Path, kind: ModelKind = ModelKind.CHAT, profile: RuntimeProfile | None = None
) -> ReplicaSpec:
    """Describe a replica of one file."""
    return ReplicaSpec(
        replica="replica",
        deployment="deployment",
        model="model",
        kind=kind,
        files=(str(path),),
        sha256=("",),
        profile=profile or RuntimeProfile(num_slots=4, context_length=256, num_threads=1),
    )


def make_job(prompt: tuple[int, ...] = (5, 6, 7), **fields: Any) -> GenerationJob:
    """Build a greedy job."""
    values: dict[str, Any] = {
        "id": "job",
        "deployment": "deployment",
        "owner": "owner",
        "salt": "salt",
        "gateway": "gateway",
        "deadline": 4e9,
        "max_tokens": 8,
        "sampling": GREEDY,
    }
    return GenerationJob(prompt_tokens=prompt, **values | fields)
