"""Measure what guesses from the prompt are worth: the same requests with and without, in turn.

    python benchmarks/prompt_lookup.py MODEL.gguf [--streams 1 8] [--rounds 3] [--threads N]
    python benchmarks/prompt_lookup.py MODEL.gguf --draft SMALL.gguf

Two engines share the weights of one model; one guesses, the other does not. Each round has both
answer the same greedy requests, one after the other. ``edit`` asks for a text again with a word
changed, where prompt lookup is at its best; ``story`` has nothing to look up, and shows what
guessing costs where it is of no use. For each number of streams: tokens per second of both, the
median of the rounds' ratios, how many guesses were right, and how many texts were the same.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from inference.backend.llama import LlamaBackend
from inference.backend.llama_draft import open_draft_backend
from inference.backend.llama_model import LlamaModel, load_model
from inference.engine.admission import admit
from inference.engine.engine import Engine
from inference.protocol.events import Done, Event, Tokens
from inference.protocol.jobs import GenerationJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.protocol.sampling import SamplingParams

TEXT = (
    "The lighthouse keeper {name} lives alone on a small island in the north. Every morning "
    "{name} climbs the one hundred and twenty steps to the lamp, cleans the glass, and writes the "
    "weather into a thick blue book. In the afternoon {name} repairs nets, feeds the hens behind "
    "the house, and waits for the boat that brings letters on Tuesdays and bread on Fridays. When "
    "the fog comes in from the sea, {name} lights the lamp early and sits beside it until the "
    "morning, listening to the bell on the rocks and to the waves under the window."
)
NAMES = ("Anna", "Boris", "Clara", "David", "Edith", "Frank", "Greta", "Henry")
WORKLOADS = {
    "edit": "Repeat this text, changing {name} to Robert, and say nothing else:\n\n" + TEXT,
    "story": "Tell a long story about {name}, a cat, and a ship that is lost in the ice.",
}
CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one engine made of a round."""

    tokens_per_second: float
    texts: tuple[tuple[int, ...], ...]
    num_drafted: int
    num_accepted: int


class Side:
    """An engine that is stepped by hand, and what it tells."""

    def __init__(self, model: LlamaModel, spec: ReplicaSpec) -> None:
        self.backend = LlamaBackend(model, spec.profile)
        has_draft = spec.profile.speculation == "draft"
        self.engine = Engine(
            self.backend,
            spec.profile,
            self._collect,
            draft_backend=open_draft_backend(spec, model) if has_draft else None,
        )
        self._tokens: dict[str, list[int]] = {}
        self._first_token_at = 0.0

    def run(self, jobs: Sequence[GenerationJob]) -> Outcome:
        """Answer jobs; the clock starts when all prompts are computed."""
        self._tokens = {job.id: [] for job in jobs}
        for job in jobs:
            self.engine.add(admit(job, self.backend))
        while not all(self._tokens.values()):
            self.engine.step()
        num_before = sum(map(len, self._tokens.values()))
        before, started = self.engine.stats(), time.perf_counter()
        while self.engine.has_work:
            self.engine.step()
        seconds = time.perf_counter() - started
        after = self.engine.stats()
        num_tokens = sum(map(len, self._tokens.values())) - num_before
        return Outcome(
            tokens_per_second=num_tokens / seconds,
            texts=tuple(tuple(self._tokens[job.id]) for job in jobs),
            num_drafted=after.num_drafted_tokens - before.num_drafted_tokens,
            num_accepted=after.num_accepted_tokens - before.num_accepted_tokens,
        )

    def _collect(self, events: Sequence[tuple[str, Event]]) -> None:
        for job_id, event in events:
            if isinstance(event, Tokens):
                self._tokens[job_id].extend(event.token_ids)
            assert isinstance(event, Tokens | Done) or not hasattr(event, "code"), event


def make_jobs(
    model: LlamaModel, workload: str, count: int, num_tokens: int, turn: int
) -> list[GenerationJob]:
    """Build the requests of a round; no two rounds share cells."""
    jobs = []
    for index in range(count):
        prompt = CHAT.format(WORKLOADS[workload].format(name=NAMES[index % len(NAMES)]))
        jobs.append(
            GenerationJob(
                id=str(index),
                deployment="bench",
                owner="bench",
                salt=f"{turn}-{index}",
                gateway="bench",
                prompt_tokens=tuple(model.tokenize(prompt, add_special=True, parse_special=True)),
                deadline=time.time() + 3600,
                sampling=SamplingParams(temperature=0),
                max_tokens=num_tokens,
            )
        )
    return jobs


def compare(
    workload: str, streams: int, sides: tuple[Side, Side], options: argparse.Namespace
) -> str:
    """Run the rounds of one workload and sum them up in a line."""
    plain, guessing = sides
    model = plain.backend.model
    ratios, rates, num_same = [], [], 0
    num_drafted = num_accepted = 0
    for turn in range(options.rounds):
        jobs = make_jobs(model, workload, streams, options.tokens, turn)
        theirs, ours = plain.run(jobs), guessing.run(jobs)
        ratios.append(ours.tokens_per_second / theirs.tokens_per_second)
        rates.append((theirs.tokens_per_second, ours.tokens_per_second))
        num_drafted += ours.num_drafted
        num_accepted += ours.num_accepted
        num_same += sum(a == b for a, b in zip(ours.texts, theirs.texts, strict=True))
    without, with_guesses = (statistics.median(column) for column in zip(*rates, strict=True))
    share = f"{num_accepted / num_drafted:.0%} of {num_drafted}" if num_drafted else "none"
    return (
        f"{workload:5} {streams:2} streams: {without:6.1f} -> {with_guesses:6.1f} tokens/s, "
        f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), "
        f"right {share}, same texts {num_same} of {streams * options.rounds}"
    )


def main() -> None:
    """Load the model, make both engines, and print a line per workload and number of streams."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--draft", default="")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--drafts", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    plain = RuntimeProfile(
        num_slots=max(options.streams), context_length=1024, num_threads=options.threads
    )
    guessing = msgspec.structs.replace(
        plain,
        speculation="draft" if options.draft else "ngram",
        num_draft_tokens=options.drafts,
    )
    spec = ReplicaSpec(
        replica="bench",
        deployment="bench",
        model="bench",
        kind=ModelKind.CHAT,
        files=(options.model,),
        sha256=("",),
        draft_files=(options.draft,) if options.draft else (),
        profile=plain,
    )
    model = load_model(spec, lambda _: None)
    sides = (Side(model, spec), Side(model, msgspec.structs.replace(spec, profile=guessing)))
    for workload in options.workloads:
        for streams in options.streams:
            print(compare(workload, streams, sides, options), flush=True)


if __name__ == "__main__":
    main()
