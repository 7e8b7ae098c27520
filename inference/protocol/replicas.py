"""Replicas as values: what one should be (spec), what it is (status), what it has done (stats)."""

from enum import StrEnum
from itertools import zip_longest

import msgspec


class ModelKind(StrEnum):
    """What a model is for: chat and completion generate, the others return vectors or scores."""

    CHAT = "chat"
    COMPLETION = "completion"
    EMBEDDING = "embedding"
    RERANK = "rerank"

    @property
    def is_generative(self) -> bool:
        """Whether jobs of this kind produce tokens."""
        return self in (ModelKind.CHAT, ModelKind.COMPLETION)


_FEWEST_ROWS = 32
PLAIN_CACHE_TYPES = ("f32", "f16", "bf16")


class RuntimeProfile(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is loaded.

    ``context_length`` is tokens per slot; ``num_threads`` 0 means all cores, and
    ``num_threads_batch`` 0 as many as ``num_threads``. ``num_gpu_layers`` -1 offloads all layers
    where a GPU exists; ``split_mode`` (none, layer, row) tells how several GPUs share a model.
    ``weight_type`` is what matrices are converted to before they are loaded (q8_0, f16), empty for
    the types of the file.
    ``cache_type_*`` is a KV cell type (f16, q8_0, q4_0). ``flash_attention`` is auto, on or off.
    ``numa`` is empty or one of distribute, isolate, numactl.
    ``kv_cells`` bounds the cells of a unified cache; 0 means a full context for each slot.
    ``groups_prefixes`` lets sequences with the same beginning attend to it together, on CPUs.
    ``step_token_budget`` bounds the tokens of one engine step.
    ``prefill_chunk`` bounds the prompt tokens one step takes beside decoding sequences.
    ``prefix_sharing`` (key, owner, team, all) tells whose jobs may reuse each other's cells;
    ``prefix_host_bytes`` and ``prefix_disk_bytes`` bound where cold prefixes go.
    ``is_context_shifting`` drops the oldest tokens of a full context instead of ending there.
    ``is_deterministic`` makes the text of a request independent of what runs beside it: with
    SmolLM2 on a CPU its decode steps are as fast, since flash attention, which it does without,
    gains nothing there (benchmarks/deterministic.py: 4 and 8 streams at 99 to 101 %).
    ``speculation`` is empty, "ngram" or "draft"; ``num_draft_tokens`` bounds one guess.
    ``serves_embeddings`` lets a generative model answer embedding jobs too.
    ``min_dimensions`` is how far a client may shorten vectors, 0 not at all.
    ``max_queue`` bounds waiting jobs, ``max_queue_per_key`` those of one key.
    """

    context_length: int = 8192
    num_slots: int = 16
    num_threads: int = 0
    num_threads_batch: int = 0
    num_gpu_layers: int = -1
    main_gpu: int = 0
    split_mode: str = "layer"
    tensor_split: tuple[float, ...] = ()
    weight_type: str = ""
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    flash_attention: str = "auto"
    is_kv_unified: bool = False
    kv_cells: int = 0
    groups_prefixes: bool = True
    step_token_budget: int = 256
    prefill_chunk: int = 128
    pooling: str = ""
    use_mmap: bool = True
    use_mlock: bool = False
    numa: str = ""
    prefix_sharing: str = "key"
    prefix_host_bytes: int = 256 << 20
    prefix_disk_bytes: int = 0
    is_context_shifting: bool = False
    is_deterministic: bool = False
    speculation: str = ""
    num_draft_tokens: int = 16
    serves_embeddings: bool = False
    min_dimensions: int = 0
    max_queue: int = 512
    max_queue_per_key: int = 128
    job_timeout_seconds: float = 600.0

    @property
    def sequence_cells(self) -> int:
        """How many tokens one sequence may hold: no more than there are cells for all."""
        if self.is_kv_unified and self.kv_cells:
            return min(self.context_length, self.kv_cells)
        return self.context_length

    @property
    def max_step_tokens(self) -> int:
        """How many tokens one step may hold: every slot can always decode one."""
        fewest = max(self.num_slots, 2 if self.is_deterministic else 1)  # or no cut would fit
        return max(self.step_token_budget, fewest)

    @property
    def max_step_rows(self) -> int:
        """How many rows of logits one step may give: each can be a megabyte."""
        wanted = max(self.num_slots * (1 + self.num_draft_tokens), _FEWEST_ROWS)
        return min(wanted, self.max_step_tokens)

    @property
    def may_fuse_attention(self) -> bool:
        """Whether generation may use flash attention.

        Some of its kernels depend on what else a call computes; those for a quantized V cache,
        which cannot do without, do not.
        """
        is_plain = self.cache_type_v in PLAIN_CACHE_TYPES
        return self.flash_attention != "off" and not (self.is_deterministic and is_plain)

    def context_cells(self, context_length: int) -> int:
        """Tell how many cells a context for generation has, with slots of this length."""
        if self.is_kv_unified and self.kv_cells:
            return self.kv_cells
        return context_length * self.num_slots

    def group_cells(self, context_length: int) -> int:
        """Tell how many cells sequences that begin alike may share, beside their own; 0: none.

        A full context, and room for answers. Attention is not fused there, so the numbers differ
        in their last digits, and its values must be plain.
        """
        is_plain = self.cache_type_v in PLAIN_CACHE_TYPES
        may_differ = self.flash_attention != "on" and not self.is_deterministic
        if not (self.groups_prefixes and is_plain and may_differ) or self.is_kv_unified:
            return 0
        return context_length + 128 * self.num_slots if self.num_slots >= 4 else 0

    @property
    def prefill_cut(self) -> int:
        """The multiples at which a deterministic deployment cuts prompts; 0 elsewhere."""
        if not self.is_deterministic:
            return 0
        return max(2, min(self.prefill_chunk // 2, self.max_step_rows))


MAX_LORA_SCALE = 100.0
# What stands for a model without weights, in place of a path.
FAKE_PREFIX = "fake:"


class LoraAdapter(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter loaded beside a model; requests name it by its place in the list.

    ``scale`` applies where a request chooses nothing; 0 leaves the adapter off by itself.
    """

    name: str
    file: str
    sha256: str = ""
    scale: float = 0.0


class ReplicaSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One process that should run on a node.

    ``files`` are absolute paths on that node, first shard first; ``draft_files`` those of the
    small model that guesses for it, if any.
    """

    replica: str
    deployment: str
    model: str
    kind: ModelKind
    files: tuple[str, ...]
    sha256: tuple[str, ...]
    draft_files: tuple[str, ...] = ()
    draft_sha256: tuple[str, ...] = ()
    loras: tuple[LoraAdapter, ...] = ()
    profile: RuntimeProfile = RuntimeProfile()
    generation: int = 1

    @property
    def hashed_files(self) -> tuple[tuple[str, str], ...]:
        """All files to load, drafts and adapters too, each with its hash, "" where not known."""
        if self.files and self.files[0].startswith(FAKE_PREFIX):
            return ()
        models = ((self.files, self.sha256), (self.draft_files, self.draft_sha256))
        found = [
            pair
            for files, hashes in models
            for pair in zip_longest(files, hashes[: len(files)], fillvalue="")
        ]
        return (*found, *((adapter.file, adapter.sha256) for adapter in self.loras))


class ReplicaState(StrEnum):
    """starting -> loading -> ready -> draining -> stopped; any -> failed; ready <-> stalled.

    Stalled: the engine has jobs and makes no step. It gets no more; in the end it is restarted.
    """

    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    STALLED = "stalled"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_coming(self) -> bool:
        """Whether it may serve soon: it starts or loads."""
        return self in (ReplicaState.STARTING, ReplicaState.LOADING)


class AdapterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded LoRA adapter as requests may know it: never its path."""

    name: str
    scale: float = 0.0


class InfillTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The control tokens around text with a gap; -1 where the vocabulary has none."""

    prefix: int = -1
    suffix: int = -1
    middle: int = -1
    repository: int = -1
    file: int = -1

    @property
    def is_complete(self) -> bool:
        """Whether the model was trained to fill a gap in."""
        return min(self.prefix, self.suffix, self.middle) >= 0


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the loaded model says of itself, for validation in the gateway.

    ``context_length`` is what one sequence may hold here, ``num_ctx_train`` in training.
    ``sampler_plugins`` are the samplers that the replica's operator added.
    ``end_tokens`` end an answer.
    ``num_prefix_tokens`` and ``num_suffix_tokens`` are added around a text. ``pooling`` (none,
    mean, cls, last, rank) is empty where no vectors are computed; a vector has ``num_dimensions``.
    """

    num_vocab: int = 0
    context_length: int = 0
    num_ctx_train: int = 0
    num_embd: int = 0
    num_params: int = 0
    size_bytes: int = 0
    description: str = ""
    bos_token: str = ""
    eos_token: str = ""
    bos_token_id: int = -1
    eos_token_id: int = -1
    end_tokens: tuple[int, ...] = ()
    infill: InfillTokens = InfillTokens()
    has_chat_template: bool = False
    chat_template: str = ""
    has_encoder: bool = False
    vocab_type: int = 0
    sampler_plugins: tuple[str, ...] = ()
    num_prefix_tokens: int = 0
    num_suffix_tokens: int = 0
    pooling: str = ""
    num_dimensions: int = 0
    adapters: tuple[AdapterFacts, ...] = ()


class SlotStats(msgspec.Struct, frozen=True, kw_only=True):
    """One seat of the batch. Never carries prompt text."""

    id: int
    job: str = ""
    owner: str = ""
    num_prompt_tokens: int = 0
    num_prompt_processed: int = 0
    num_cached_tokens: int = 0
    num_decoded: int = 0
    num_remaining: int = -1
    has_new_line: bool = False


class EngineStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counters since the replica was loaded (monotonic), and gauges of now.

    A draft is one guess at several tokens; ``accepted_by_position`` counts how often its first,
    second… was right. ``longest_sequence`` is the most tokens one held, prompt and answer.
    ``num_sharing`` of those that run attend to a beginning of ``num_shared_tokens`` together.
    """

    num_steps: int = 0
    num_decode_steps: int = 0
    num_decoded_tokens: int = 0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_jobs_done: int = 0
    num_jobs_failed: int = 0
    num_jobs_cancelled: int = 0
    num_jobs_preempted: int = 0
    num_drafted_tokens: int = 0
    num_accepted_tokens: int = 0
    num_drafts: int = 0
    accepted_by_position: tuple[int, ...] = ()
    longest_sequence: int = 0
    num_batch_sequences: int = 0
    prompt_seconds: float = 0.0
    decode_seconds: float = 0.0
    num_running: int = 0
    num_waiting: int = 0
    num_sharing: int = 0
    num_shared_tokens: int = 0
    kv_cells_used: int = 0
    kv_cells_total: int = 0
    last_step_at: float = 0.0

    @property
    def prompt_token_seconds(self) -> float:
        """What a token of a prompt takes to compute, on average; 0 where none was."""
        return self.prompt_seconds / self.num_prompt_tokens if self.num_prompt_tokens else 0.0

    @property
    def mean_batch(self) -> float:
        """Sequences that shared a decode step, on average."""
        return self.num_batch_sequences / self.num_decode_steps if self.num_decode_steps else 0.0


class ReplicaFailure(msgspec.Struct, frozen=True, kw_only=True):
    """How a replica's process ended badly: when (Unix time), why, and the last lines of its log.

    The lines hold no secret and nothing that clients sent.
    """

    at: float
    reason: str
    log: tuple[str, ...] = ()


class ReplicaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A replica's heartbeat, written each second. ``reason`` tells why it failed or waits.

    ``failure`` is its last bad end, told while it does not run.
    ``bad_sha256`` names a file that is not what was registered under that hash.
    ``num_failures`` counts its process's bad ends of the last minutes. ``ttft_seconds`` is how long
    most jobs of late took from the queue to their first token, 0 where there was none;
    ``first_token_seconds`` are those times of the latest jobs, one by one.
    """

    replica: str
    deployment: str
    node: str
    state: ReplicaState
    pid: int = 0
    started_at: float = 0.0
    progress: float = 0.0
    reason: str = ""
    bad_sha256: str = ""
    kind: ModelKind = ModelKind.CHAT
    num_slots: int = 0
    generation: int = 1
    facts: ModelFacts = ModelFacts()
    stats: EngineStats = EngineStats()
    slots: tuple[SlotStats, ...] = ()
    memory_bytes: int = 0
    num_failures: int = 0
    failure: ReplicaFailure | None = None
    ttft_seconds: float = 0.0
    first_token_seconds: tuple[float, ...] = ()


class Prospect(StrEnum):
    """What a request without a ready replica may hope for.

    Blocked may change at any moment, with a node that comes or memory that gets free. One that is
    switched off may just have been switched on again.
    """

    COMING = "coming"
    BLOCKED = "blocked"
    HOPELESS = "hopeless"
    OFF = "off"


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What the controller says of a deployment; ``patience_seconds`` is how long one may wait."""

    prospect: Prospect
    reason: str = ""
    patience_seconds: float = 600.0
