"""The columns of a runtime profile: one for each field that the data plane takes."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from inference.protocol.replicas import RuntimeProfile

CACHE_TYPES = [
    ("f16", "f16 (2 bytes)"),
    ("bf16", "bf16 (2 bytes)"),
    ("f32", "f32 (4 bytes)"),
    ("q8_0", "q8_0 (about half of f16)"),
    ("q5_1", "q5_1 (about a third)"),
    ("q5_0", "q5_0 (about a third)"),
    ("q4_1", "q4_1 (less than a third)"),
    ("q4_0", "q4_0 (a little more than a quarter)"),
    ("iq4_nl", "iq4_nl (a little more than a quarter)"),
]
WEIGHT_TYPES = [
    ("", "as in the file"),
    ("q8_0", "q8_0 (8.5 bits a weight)"),
    ("f16", "f16 (16 bits a weight)"),
]
FLASH_ATTENTION = [("auto", "where the device can"), ("on", "on"), ("off", "off")]
SPLIT_MODES = [
    ("layer", "by layers"),
    ("row", "by rows"),
    ("none", "not at all: one GPU takes it"),
]
NUMA_STRATEGIES = [
    ("", "off"),
    ("distribute", "spread threads over all nodes"),
    ("isolate", "stay on the node it starts on"),
    ("numactl", "as numactl has bound the process"),
]
PREFIX_SHARING = [
    ("key", "jobs of the same API key"),
    ("owner", "all keys of the same owner"),
    ("team", "all keys of the same team"),
    ("all", "everybody"),
]
SPECULATION = [("", "off"), ("ngram", "look up in the prompt"), ("draft", "ask the draft model")]
POOLING_TYPES = [
    ("", "as the model says"),
    ("none", "none"),
    ("mean", "mean"),
    ("cls", "first token"),
    ("last", "last token"),
    ("rank", "rank"),
]
MAX_SLOTS = 256
# The native library counts KV cells in 31 bits.
MAX_CELLS = 2**31 - 1
MAX_BYTES = 2**50

_DEFAULTS = RuntimeProfile()


def read_shares(text: str) -> tuple[float, ...]:
    """Read the shares of GPUs; raises ValueError with what would be right."""
    try:
        shares = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        shares = (-1.0,)
    if any(not 0 <= share < float("inf") for share in shares):
        raise ValueError("Give numbers of at least 0 with commas between, like 3,1.")
    return shares


def between(low: float, high: float) -> list[MinValueValidator | MaxValueValidator]:
    """Give the validators of a number from ``low`` to ``high``."""
    return [MinValueValidator(low), MaxValueValidator(high)]


class ProfileColumns(models.Model):
    """What ``RuntimeProfile`` says, as columns. Each help text tells what a setting costs."""

    context_length = models.PositiveIntegerField(
        default=_DEFAULTS.context_length,
        validators=between(8, 2**27),
        help_text="Tokens that one sequence may hold, prompt and answer together. Memory grows "
        "with it, and with the slots.",
    )
    num_slots = models.PositiveIntegerField(
        "slots",
        default=_DEFAULTS.num_slots,
        validators=between(1, MAX_SLOTS),
        help_text="Sequences that are computed together. More answer more clients at once; each "
        "has a context of its own in memory.",
    )
    max_queue = models.PositiveIntegerField(
        "queue",
        default=_DEFAULTS.max_queue,
        validators=between(0, 100_000),
        help_text="Jobs that may wait for a slot; more get a 503.",
    )
    max_queue_per_key = models.PositiveIntegerField(
        "queue per key",
        default=_DEFAULTS.max_queue_per_key,
        validators=between(0, 100_000),
        help_text="Jobs of one API key that may wait for a slot; more get a 429.",
    )
    job_timeout_seconds = models.FloatField(
        "job timeout",
        default=_DEFAULTS.job_timeout_seconds,
        validators=between(1, 86_400),
        help_text="Seconds from a job's arrival to its last token.",
    )

    weight_type = models.CharField(
        "weights",
        max_length=8,
        blank=True,
        choices=WEIGHT_TYPES,
        default=_DEFAULTS.weight_type,
        help_text="Convert the weights when a replica starts, once on each node. CPUs have fast "
        "code for many tokens at once only for some types: files of Q4_1 or Q5_1 are computed "
        "about 1.7 times as fast as q8_0, for up to twice the memory (benchmarks/weights.py). "
        "Answers differ in rare close calls.",
    )
    cache_type_k = models.CharField(
        "K cache type",
        max_length=8,
        choices=CACHE_TYPES,
        default=_DEFAULTS.cache_type_k,
        help_text="How the keys of the context are kept. q8_0 halves them and is hardly noticed; "
        "4 bits cost quality.",
    )
    cache_type_v = models.CharField(
        "V cache type",
        max_length=8,
        choices=CACHE_TYPES,
        default=_DEFAULTS.cache_type_v,
        help_text="How the values are kept. Quantized types need flash attention.",
    )
    flash_attention = models.CharField(
        max_length=8,
        choices=FLASH_ATTENTION,
        default=_DEFAULTS.flash_attention,
        help_text="Attention without the large intermediate table: less memory, mostly faster. "
        "“On” fails where the device cannot do it.",
    )
    is_kv_unified = models.BooleanField(
        "unified KV cache",
        default=_DEFAULTS.is_kv_unified,
        help_text="One pool of cells for all slots instead of a part for each: prefixes are "
        "shared without a copy, but every token attends over the cells of all.",
    )
    kv_cells = models.PositiveIntegerField(
        "KV cells",
        default=_DEFAULTS.kv_cells,
        validators=between(0, MAX_CELLS),
        help_text="Cells of a unified cache, when it should be smaller than a full context for "
        "each slot. Jobs then wait, or are set back, when it is full. 0: a full context each.",
    )
    groups_prefixes = models.BooleanField(
        "attend together",
        default=_DEFAULTS.groups_prefixes,
        help_text="On CPUs, sequences with the same beginning (a system prompt) attend to it "
        "together while that is faster; the last digits of their numbers may then differ.",
    )
    is_context_shifting = models.BooleanField(
        "shift a full context",
        default=_DEFAULTS.is_context_shifting,
        help_text="Drop the oldest tokens of a context that is full and go on, instead of ending "
        "the answer there. The model forgets how the text began.",
    )
    prefix_sharing = models.CharField(
        max_length=8,
        choices=PREFIX_SHARING,
        default=_DEFAULTS.prefix_sharing,
        help_text="Who may reuse what was computed for the same beginning of a prompt. Wider "
        "sharing saves work, but the time of an answer then tells what others have asked.",
    )
    prefix_host_bytes = models.BigIntegerField(
        "prefixes in memory",
        default=_DEFAULTS.prefix_host_bytes,
        validators=between(0, MAX_BYTES),
        help_text="Host memory for prefixes that lost their place in the cache. 0: none.",
    )
    prefix_disk_bytes = models.BigIntegerField(
        "prefixes on disk",
        default=_DEFAULTS.prefix_disk_bytes,
        validators=between(0, MAX_BYTES),
        help_text="Disk space for prefixes that memory has no room for. Prompt contents can be "
        "recovered from them. 0: none.",
    )

    step_token_budget = models.PositiveIntegerField(
        default=_DEFAULTS.step_token_budget,
        validators=between(1, 65536),
        help_text="Tokens of one engine step at most. More suits GPUs; fewer free the slot of a "
        "cancelled prompt sooner.",
    )
    prefill_chunk = models.PositiveIntegerField(
        default=_DEFAULTS.prefill_chunk,
        validators=between(1, 65536),
        help_text="Prompt tokens that one step takes beside decoding sequences. Fewer keep the "
        "answers of others smooth; more read long prompts sooner.",
    )
    is_deterministic = models.BooleanField(
        "deterministic",
        default=_DEFAULTS.is_deterministic,
        help_text="The same request with the same seed gives the same bytes, whatever runs "
        "beside it. On a CPU its steps are as fast as others (benchmarks/deterministic.py); it "
        "costs guesses, and that prefixes are shared only in whole slices and answers are read "
        "again when a conversation goes on.",
    )
    speculation = models.CharField(
        max_length=8,
        choices=SPECULATION,
        blank=True,
        default=_DEFAULTS.speculation,
        help_text="Guess tokens ahead and check them in one step; the text stays the same. Pays "
        "for few clients at once and text that repeats its prompt.",
    )
    num_draft_tokens = models.PositiveIntegerField(
        "guessed tokens",
        default=_DEFAULTS.num_draft_tokens,
        validators=between(1, 64),
        help_text="Tokens guessed ahead at most. Wrong guesses are work for nothing.",
    )
    serves_embeddings = models.BooleanField(
        "serves embeddings too",
        default=_DEFAULTS.serves_embeddings,
        help_text="A chat model that answers embedding requests as well. Takes a second context "
        "in memory.",
    )
    pooling = models.CharField(
        max_length=8,
        blank=True,
        choices=POOLING_TYPES,
        default=_DEFAULTS.pooling,
        help_text="How the vectors of an input's tokens become one, for embeddings and rerank.",
    )
    min_dimensions = models.PositiveIntegerField(
        "shortest vectors",
        default=_DEFAULTS.min_dimensions,
        validators=between(0, 2**20),
        help_text="Numbers to which a client may shorten vectors, for models trained for that "
        "(Matryoshka); those of others lose their meaning. 0: only whole vectors.",
    )

    num_threads = models.PositiveIntegerField(
        "threads",
        default=_DEFAULTS.num_threads,
        validators=between(0, 1024),
        help_text="Threads that decode. More than there are cores is much slower. 0: all cores.",
    )
    num_threads_batch = models.PositiveIntegerField(
        "threads for prompts",
        default=_DEFAULTS.num_threads_batch,
        validators=between(0, 1024),
        help_text="Threads that read prompts. 0: as many as decode.",
    )
    num_gpu_layers = models.IntegerField(
        "GPU layers",
        default=_DEFAULTS.num_gpu_layers,
        validators=between(-1, 4096),
        help_text="Layers to offload; fewer when the model does not fit. -1: all, where there is "
        "a GPU.",
    )
    split_mode = models.CharField(
        max_length=8,
        choices=SPLIT_MODES,
        default=_DEFAULTS.split_mode,
        help_text="How several GPUs share the model. By rows needs a fast link between them.",
    )
    main_gpu = models.PositiveIntegerField(
        "main GPU",
        default=_DEFAULTS.main_gpu,
        validators=between(0, 255),
        help_text="The GPU that takes everything when it is not split. The first is 0.",
    )
    tensor_split = models.CharField(
        max_length=400,
        blank=True,
        help_text="Share of each GPU, as numbers with commas (3,1). Empty: by free memory.",
    )
    use_mmap = models.BooleanField(
        "map the file",
        default=_DEFAULTS.use_mmap,
        help_text="Weights stay in the file and are shared between replicas. Without, each "
        "replica reads a copy of its own.",
    )
    use_mlock = models.BooleanField(
        "lock in memory",
        default=_DEFAULTS.use_mlock,
        help_text="Never swap the weights out. The node's user must be allowed to lock that much "
        "(ulimit -l), else the replica fails.",
    )
    numa = models.CharField(
        "NUMA",
        max_length=16,
        choices=NUMA_STRATEGIES,
        blank=True,
        default=_DEFAULTS.numa,
        help_text="For machines with several memory nodes. Try “spread”; leave off elsewhere.",
    )

    class Meta:
        abstract = True

    @property
    def tensor_shares(self) -> tuple[float, ...]:
        """``tensor_split`` as numbers; raises ValueError for anything else."""
        return read_shares(self.tensor_split)

    @property
    def profile(self) -> RuntimeProfile:
        """The runtime profile as the data plane takes it."""
        return RuntimeProfile(
            tensor_split=self.tensor_shares,
            **{name: getattr(self, name) for name in _SAME_IN_BOTH},
        )


_SAME_IN_BOTH = tuple(name for name in RuntimeProfile.__struct_fields__ if name != "tensor_split")
PROFILE_FIELDS = (*_SAME_IN_BOTH, "tensor_split")
