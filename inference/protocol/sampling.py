"""How one token is chosen from logits: every knob a request may turn."""

import msgspec

SAMPLER_LETTERS = {
    "d": "dry",
    "k": "top_k",
    "y": "typ_p",
    "p": "top_p",
    "s": "top_n_sigma",
    "m": "min_p",
    "t": "temperature",
    "x": "xtc",
    "e": "penalties",
    "a": "adaptive_p",
    "i": "infill",
}
"""The samplers whose order a request may choose, and llama-server's letter for each."""
MAX_SAMPLERS = 32
"""How many names such an order may have: each may be there more than once."""
NUM_SEEDS = 2**32 - 1
"""Seeds are below it; llama.cpp takes this number itself for "a random one"."""


class GrammarTrigger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What wakes a lazy grammar: a token (id 0 or above), a word, or a regular expression.

    The grammar holds from the token or word on, or from the pattern's first group.
    """

    token: int = -1
    word: str = ""
    pattern: str = ""


class PluginSampler(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A registered Python sampler that edits the logits, and its JSON parameters."""

    name: str
    params: dict[str, float | int | str | bool] = {}


class ReasoningLimit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many tokens a text may have between two marks at its beginning, before the answer.

    Then ``ending`` comes, whatever the model would write. ``is_open``: the text begins within.
    """

    opening: str
    closing: str
    ending: str
    max_tokens: int
    is_open: bool = False


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling settings of one sequence; the defaults are llama-server's.

    ``temperature`` 0 or below means greedy. ``seed`` is None for a random one, else from 0 to below
    NUM_SEEDS.
    ``logit_bias`` pairs are (token id, bias); None bans a token, as JSON has no infinity.
    ``grammar`` constrains from the first token on, or, lazy, from a trigger on. ``grammar_field``
    is the field of the request that it was made from, and that errors about it name.
    ``preserved_tokens`` are spellings of control tokens that a grammar may use and that are told
    as text.
    ``adaptive_target`` is a probability to aim at where ``samplers`` name adaptive_p; below 0 off.
    ``dry_penalty_last_n`` and ``repeat_last_n``: -1 means the whole context, 0 disables.
    """

    temperature: float = 0.8
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    top_n_sigma: float = -1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    repeat_last_n: int = 64
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    min_keep: int = 0
    samplers: tuple[str, ...] = (
        "penalties",
        "dry",
        "top_n_sigma",
        "top_k",
        "typ_p",
        "top_p",
        "min_p",
        "xtc",
        "temperature",
    )
    seed: int | None = None
    logit_bias: tuple[tuple[int, float | None], ...] = ()
    grammar: str = ""
    grammar_field: str = "grammar"
    is_grammar_lazy: bool = False
    grammar_triggers: tuple[GrammarTrigger, ...] = ()
    preserved_tokens: tuple[str, ...] = ()
    adaptive_target: float = -1.0
    adaptive_decay: float = 0.9
    plugins: tuple[PluginSampler, ...] = ()
    reasoning_limit: ReasoningLimit | None = None
