"""The form of a deployment, topic by topic: what everybody decides first, the rest folded up."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.utils import flatten

FOLDED = ("collapse",)

BASICS = (
    None,
    {
        "fields": (
            ("model", "slug"),
            "pinned_version",
            ("context_length", "num_slots"),
            "memory",
            ("min_replicas", "max_replicas"),
            "idle_timeout_seconds",
            "enabled",
        ),
        "description": "What is proposed suits the model and the machines. The panel tells what "
        "memory it takes, before anything is saved. “Save” replaces the replicas of a deployment "
        "that runs, one by one, if what they are loaded with has changed; “Save and restart” "
        "replaces them in any case.",
    },
)
REQUESTS = (
    "Requests",
    {
        "classes": FOLDED,
        "fields": (
            ("share", "split"),
            ("max_queue", "max_queue_per_key", "job_timeout_seconds"),
            "target_ttft_seconds",
            "is_context_shifting",
            "prefix_sharing",
            "text_retention_days",
        ),
        "description": "Who gets how much of it, how long they wait, and what happens when a "
        "context is full.",
    },
)
DEFAULTS = (
    "Defaults of requests",
    {
        "classes": FOLDED,
        "fields": (
            ("default_temperature", "default_top_k"),
            ("default_top_p", "default_min_p"),
            ("default_n_predict", "default_seed"),
            ("default_repeat_penalty", "default_repeat_last_n"),
            ("default_presence_penalty", "default_frequency_penalty"),
            ("default_dry_multiplier", "default_dry_base"),
            ("default_dry_allowed_length", "default_dry_penalty_last_n"),
            ("default_xtc_probability", "default_xtc_threshold"),
            ("default_typical_p", "default_top_n_sigma"),
            ("default_dynatemp_range", "default_dynatemp_exponent"),
            "default_mirostat",
            ("default_mirostat_tau", "default_mirostat_eta"),
            ("default_adaptive_target", "default_adaptive_decay"),
            ("default_samplers", "default_n_keep"),
        ),
        "description": "What holds where a request says nothing, like llama-server's options whose "
        "names are given. They act on the next request; nothing is reloaded.",
    },
)
MEMORY = (
    "Memory and cache",
    {
        "classes": FOLDED,
        "fields": (
            ("cache_type_k", "cache_type_v"),
            ("weight_type", "flash_attention"),
            ("is_kv_unified", "kv_cells"),
            "groups_prefixes",
            ("prefix_host_bytes", "prefix_disk_bytes"),
            ("use_mmap", "use_mlock"),
            "ignores_memory",
        ),
        "description": "Where contexts are kept, and how exactly. Smaller cache types make room "
        "for more slots or longer contexts.",
    },
)
SPEED = (
    "Speed",
    {
        "classes": FOLDED,
        "fields": (
            ("step_token_budget", "prefill_chunk"),
            ("speculation", "num_draft_tokens"),
            "draft_version",
            "is_deterministic",
        ),
        "description": "How the work of a step is cut, and whether tokens are guessed ahead.",
    },
)
VECTORS = (
    "Embeddings and reranking",
    {"classes": FOLDED, "fields": ("serves_embeddings", "pooling", "min_dimensions")},
)
MACHINE = (
    "Machine",
    {
        "classes": FOLDED,
        "fields": (
            ("num_threads", "num_threads_batch"),
            "num_gpu_layers",
            ("split_mode", "tensor_split", "main_gpu"),
            "numa",
        ),
        "description": "How processors and GPUs share the work. As proposed, a model takes all "
        "cores, and all GPUs of its node.",
    },
)
FIELDSETS = (BASICS, REQUESTS, DEFAULTS, MEMORY, SPEED, VECTORS, MACHINE)


def _as_seen(fieldset: Any) -> Any:
    """Give a topic for those who may change nothing: its panels stay as they are."""
    name, options = fieldset
    fields = tuple(_SEEN.get(one, one) for one in options["fields"])
    # What the first one says is for those who save.
    words = options.get("description", "") if name else ""
    return name, options | {"fields": fields, "description": words}


_SEEN: dict[Any, Any] = {"memory": "memory_now", ("share", "split"): ("share", "split_now")}
SEEN_FIELDSETS = tuple(_as_seen(one) for one in FIELDSETS)


def open_where(fieldsets: Any, fields: Iterable[str]) -> Any:
    """Fold up no topic that has one of the fields: an error of theirs must be seen.

    Django does so too, but misses fields that stand beside others.
    """
    named = set(fields)
    return [
        (name, options | {"classes": ()} if named & set(flatten(options["fields"])) else options)
        for name, options in fieldsets
    ]
