"""Filling gaps: what stands before and behind one, in the order a model was trained to read.

With a repository token and a file token: repository, then each extra file with its name, then the
gap's own file. The gap's file is *prefix* (text before), *suffix* (text behind), *middle*; what is
generated stands behind the last of these tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.protocol.replicas import InfillTokens, ModelFacts
from inference.protocol.text import Tokenize
from llamero.api.generation import Prompt
from llamero.api.questions import ask_tokens
from llamero.errors import LlameroError

REPOSITORY_NAME = "myproject"
FILE_NAME = "filename"
_SNIPPET = "\n\n--- snippet ---\n\n"
"""Stands between files where the model has no token for that. llama-server's, as the names are."""
MAX_WINDOW = 2048
"""So many tokens around a gap are read: as a larger window costs time and gains little."""
_SHARE_BEFORE = 3 / 4


@dataclass(frozen=True, slots=True)
class ExtraFile:
    """Another file that may help."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What is known around a gap, as text. ``begun`` is what already stands in it."""

    before: str
    behind: str
    begun: str = ""
    files: tuple[ExtraFile, ...] = ()
    is_suffix_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GapTokens:
    """The same as tokens. ``extra`` is everything that stands before the gap's own prefix."""

    before: Prompt
    behind: Prompt
    begun: Prompt = ()
    extra: Prompt = ()


def check_infill(facts: ModelFacts, status: int, param: str | None = None) -> None:
    """Refuse a model that was not trained to fill gaps, naming the tokens it lacks."""
    known = {name: getattr(facts.infill, name) for name in ("prefix", "suffix", "middle")}
    missing = [name for name, token in known.items() if token < 0]
    if missing:
        raise LlameroError(
            status,
            "infill_not_supported",
            "Infill is not supported by this model: its vocabulary has no token for "
            f"{', '.join(missing)}.",
            param=param,
        )


async def read_gap(deployment: str, gap: Gap, facts: ModelFacts, param: str) -> GapTokens:
    """Tokenize what is around a gap. Control tokens in it are plain text."""
    has_files = facts.infill.file >= 0
    labels = [f"{file.name}\n" if has_files else _SNIPPET for file in gap.files]
    bodies = [file.text for file in gap.files]
    names = [f"{REPOSITORY_NAME}\n", f"{FILE_NAME}\n"]
    texts = (gap.before, gap.behind, gap.begun, *names, *labels, *bodies)
    question = Tokenize(texts=texts, parse_special=False)
    found = (await ask_tokens(deployment, question, param)).tokens
    before, behind, begun, repository, own, *rest = found
    half = len(rest) // 2
    files = list(zip(rest[:half], rest[half:], strict=True))
    return GapTokens(
        before=before,
        behind=behind,
        begun=begun,
        extra=_lay_out_files(facts.infill, repository, files, own),
    )


def fit(gap: GapTokens, facts: ModelFacts, num_answer: int) -> GapTokens:
    """Cut what does not fit, farthest from the gap first: the start before it, the end behind it.

    Extra files get what is left beside the answer, the last of them first.
    """
    num_control = 3 + facts.num_prefix_tokens
    room = facts.context_length - num_answer - num_control - len(gap.begun)
    window = max(0, min(room, MAX_WINDOW))
    num_before = min(len(gap.before), int(window * _SHARE_BEFORE))
    num_behind = min(len(gap.behind), window - num_before)
    num_before = min(len(gap.before), window - num_behind)
    num_extra = max(0, min(len(gap.extra), room - num_before - num_behind))
    return GapTokens(
        before=_last(gap.before, num_before),
        behind=gap.behind[:num_behind],
        begun=gap.begun,
        extra=_last(gap.extra, num_extra),
    )


def lay_out(gap: GapTokens, facts: ModelFacts, *, is_suffix_first: bool = False) -> Prompt:
    """Put the prompt together."""
    tokens = facts.infill
    start = (facts.bos_token_id,) if facts.num_prefix_tokens and facts.bos_token_id >= 0 else ()
    before = (tokens.prefix, *gap.before, *gap.begun)
    behind = (tokens.suffix, *gap.behind)
    first, second = (behind, before) if is_suffix_first else (before, behind)
    return (*start, *gap.extra, *first, *second, tokens.middle)


def _lay_out_files(
    tokens: InfillTokens,
    repository: Prompt,
    files: Sequence[tuple[Prompt, Prompt]],
    own_name: Prompt,
) -> Prompt:
    laid: list[int] = []
    if tokens.repository >= 0:
        laid += [tokens.repository, *repository]
    mark = [tokens.file] if tokens.file >= 0 else []
    for label, body in files:
        laid += [*mark, *label, *body]
    if mark:
        laid += [*mark, *own_name]
    return tuple(laid)


def _last(tokens: Prompt, count: int) -> Prompt:
    return tokens[len(tokens) - count :]
