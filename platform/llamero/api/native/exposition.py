"""Prometheus' text format: llama-server's metrics added up, and Llamero's own for each replica."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from inference.protocol.replicas import EngineStats, ReplicaState, ReplicaStatus

CONTENT_TYPE = "text/plain; version=0.0.4"
_Number = int | float
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True, slots=True)
class Family:
    """A metric and its samples, each with its labels."""

    name: str
    kind: str
    help: str
    samples: list[tuple[Mapping[str, str], _Number]] = field(default_factory=list)

    def add(self, value: _Number, **labels: str) -> None:
        """Add a sample."""
        self.samples.append((labels, value))


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a served model: its replicas, and how many jobs wait for one of them."""

    model: str
    replicas: Sequence[ReplicaStatus]
    num_waiting: int


def write(families: Iterable[Family]) -> bytes:
    """Give the text; a family without samples is left out."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        lines.append(f"# HELP {family.name} {family.help}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [f"{family.name}{_write_labels(of)} {value}" for of, value in family.samples]
    return "".join(f"{line}\n" for line in lines).encode()


def describe_as_llama_server(measured: Sequence[Measured]) -> list[Family]:
    """Give llama-server's metrics: the sums over all replicas, without labels, as it has them.

    Its rates are those between two scrapes; here, where many may scrape, those since loading.
    """
    stats = [replica.stats for one in measured for replica in one.replicas]
    counters = [
        Family(f"llamacpp:{name}", "counter", text, [({}, _total(stats, field))])
        for name, text, field in _COUNTERS
    ]
    # A maximum is no counter, and falls when a replica ends; llama-server says that it is one.
    longest = Family("llamacpp:n_tokens_max", "counter", "Most tokens of a sequence")
    longest.add(max(_values(stats, "longest_sequence")))
    tokens, seconds = _total(stats, "num_prompt_tokens"), _total(stats, "prompt_seconds")
    predicted, spent = _total(stats, "num_decoded_tokens"), _total(stats, "decode_seconds")
    busy, steps = _total(stats, "num_batch_sequences"), _total(stats, "num_decode_steps")
    waiting = sum(one.num_waiting for one in measured) + _total(stats, "num_waiting")
    gauges = (
        ("prompt_tokens_seconds", "Prompt tokens a second", _ratio(tokens, seconds)),
        ("predicted_tokens_seconds", "Generated tokens a second", _ratio(predicted, spent)),
        ("requests_processing", "Jobs in slots", _total(stats, "num_running")),
        ("requests_deferred", "Jobs that wait for a slot", waiting),
        ("n_busy_slots_per_decode", "Slots busy in a decode step", _ratio(busy, steps)),
    )
    return [
        *counters,
        longest,
        *(Family(f"llamacpp:{name}", "gauge", text, [({}, of)]) for name, text, of in gauges),
        _by_position(stats),
    ]


def describe_replicas(measured: Sequence[Measured]) -> list[Family]:
    """Give Llamero's own metrics: every counter belongs to one process, so that rates are true."""
    waiting = Family("llamero_jobs_waiting", "gauge", "Jobs of a model that no replica took yet")
    jobs = Family("llamero_jobs_total", "counter", "Jobs that ended, by how")
    counters = [Family(f"llamero_{name}", "counter", text) for name, text, _ in _COUNTERS]
    gauges = [Family(f"llamero_{name}", "gauge", text) for name, text, _ in _GAUGES]
    for one in measured:
        waiting.add(one.num_waiting, model=one.model)
        for replica in one.replicas:
            labels = {"model": one.model, "replica": replica.replica, "node": replica.node}
            for outcome in ("done", "failed", "cancelled", "preempted"):
                count = getattr(replica.stats, f"num_jobs_{outcome}")
                jobs.add(count, **labels, outcome=outcome)
            for family, (_, _, name) in zip(counters, _COUNTERS, strict=True):
                family.add(getattr(replica.stats, name), **labels)
            for family, (_, _, measure) in zip(gauges, _GAUGES, strict=True):
                family.add(measure(replica), **labels)
    return [waiting, jobs, *counters, *gauges]


_COUNTERS = (
    ("prompt_tokens_total", "Prompt tokens computed, without cached ones", "num_prompt_tokens"),
    ("prompt_tokens_cached_total", "Prompt tokens taken from the cache", "num_cached_tokens"),
    ("prompt_seconds_total", "Seconds spent on prompts", "prompt_seconds"),
    ("tokens_predicted_total", "Tokens generated", "num_decoded_tokens"),
    ("tokens_predicted_seconds_total", "Seconds spent on generating", "decode_seconds"),
    ("n_decode_total", "Steps of the engine", "num_steps"),
    ("spec_decode_num_draft_tokens_total", "Tokens guessed", "num_drafted_tokens"),
    ("spec_decode_num_accepted_tokens_total", "Guessed tokens, if right", "num_accepted_tokens"),
    ("spec_decode_num_drafts_total", "Guesses, each at several tokens", "num_drafts"),
)
"""Names, what they count, and where that is found in the statistics of a replica."""
_GAUGES: tuple[tuple[str, str, Callable[[ReplicaStatus], _Number]], ...] = (
    ("replica_ready", "Whether it takes jobs", lambda one: int(one.state is ReplicaState.READY)),
    ("replica_slots", "Jobs it can run at once", lambda one: one.num_slots),
    ("replica_memory_bytes", "Memory of its process", lambda one: one.memory_bytes),
    ("replica_first_token_seconds", "Wait for first tokens of late", lambda one: one.ttft_seconds),
    ("jobs_running", "Jobs in its slots", lambda one: one.stats.num_running),
    ("jobs_sharing", "Jobs that attend to one beginning", lambda one: one.stats.num_sharing),
    ("shared_tokens", "Tokens of that beginning", lambda one: one.stats.num_shared_tokens),
    ("kv_cells_used", "Cells of its KV cache in use", lambda one: one.stats.kv_cells_used),
    ("kv_cells", "Cells of its KV cache", lambda one: one.stats.kv_cells_total),
)


def _by_position(stats: Sequence[EngineStats]) -> Family:
    """Count guesses that were right by their place in the draft; nothing where none is made."""
    family = Family(
        "llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
        "counter",
        "Guessed tokens that were right, by place",
    )
    for at in range(max((len(one.accepted_by_position) for one in stats), default=0)):
        family.add(
            sum(sum(one.accepted_by_position[at : at + 1]) for one in stats), position=f"{at}"
        )
    return family


def _values(stats: Sequence[EngineStats], name: str) -> list[_Number]:
    return [getattr(one, name) for one in stats] or [0]


def _total(stats: Sequence[EngineStats], name: str) -> _Number:
    return sum(_values(stats, name))


def _ratio(amount: _Number, per: _Number) -> float:
    return amount / per if per else 0.0


def _write_labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"
