"""A whole engine on a real model, for tests."""

import time
from pathlib import Path
from typing import Any

from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.protocol.sampling import SamplingParams
from inference.worker.loading import LoadedEngine, build_engine
from tests.inference.engine.fakes import Outcome
from tests.inference.engine.inbox import Inbox

GREEDY = SamplingParams(temperature=0)


class Replica:
    """A running engine and its inbox."""

    def __init__(self, path: Path, **profile: Any) -> None:
        self.inbox = Inbox()
        spec = ReplicaSpec(
            replica="r",
            deployment="d",
            model="m",
            kind=ModelKind.CHAT,
            files=(str(path),),
            sha256=("",),
            profile=RuntimeProfile(**{"num_slots": 4, "context_length": 1024} | profile),
        )
        self.loaded: LoadedEngine = build_engine(spec, self.inbox, lambda _: None)
        self.loaded.runner.start()
        self._num_jobs = 0

    def submit(self, prompt: str, **fields: object) -> str:
        """Submit a job and give its id."""
        self._num_jobs += 1
        model = self.loaded.model
        values: dict[str, object] = {
            "id": f"job{self._num_jobs}",
            "deployment": "d",
            "owner": "o",
            "salt": "s",
            "gateway": "g",
            "prompt_tokens": tuple(model.tokenize(prompt, add_special=True, parse_special=True)),
            "deadline": time.time() + 100,
            "sampling": GREEDY,
            "max_tokens": 8,
        }
        job = GenerationJob(**values | fields)  # type: ignore[arg-type]
        self.loaded.runner.submit(job)
        return job.id

    def answer(self, prompt: str, **fields: object) -> Outcome:
        """Run one job to its end."""
        return self.inbox.wait_for_end(self.submit(prompt, **fields))


def chat(text: str) -> str:
    """Write a message as SmolLM2's template does."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
