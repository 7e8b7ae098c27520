"""llama-server's completion documents: the whole answer, and its pieces while it streams."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from inference.protocol.events import (
    Candidate,
    Done,
    FinishReason,
    Progress,
    Started,
    TokenLogprob,
    Tokens,
)
from inference.protocol.sampling import GrammarTrigger, SamplingParams
from llamero.api.collect import Choice, timings_object
from llamero.api.generation import GenerationSettings
from llamero.api.native.completion_request import CompletionRequest
from llamero.api.openai.logprobs import finite, token_bytes, token_text
from llamero.api.run import ChoiceEvent
from llamero.api.sampling import sampling_of_choice
from llamero.api.sse import data_line

_STOP_TYPES = {
    FinishReason.EOS: "eos",
    FinishReason.STOP: "word",
    FinishReason.LENGTH: "limit",
    FinishReason.CANCELLED: "none",
}


def describe_settings(
    sampling: SamplingParams, settings: GenerationSettings | None, n_predict: int
) -> dict[str, Any]:
    """Give ``generation_settings``: what was in effect."""
    described = {
        name: value
        for name, value in msgspec.structs.asdict(sampling).items()
        if isinstance(value, int | float | str) and name != "is_grammar_lazy"
    }
    settings = settings or GenerationSettings(sampling=sampling)
    return described | {
        "n_predict": n_predict,
        "max_tokens": n_predict,
        "seed": -1 if sampling.seed is None else sampling.seed,
        "samplers": list(sampling.samplers),
        "dry_sequence_breakers": list(sampling.dry_sequence_breakers),
        "logit_bias": [
            {"token": token, "bias": finite(-math.inf if bias is None else bias)}
            for token, bias in sampling.logit_bias
        ],
        "grammar_lazy": sampling.is_grammar_lazy,
        "grammar_triggers": [_trigger(trigger) for trigger in sampling.grammar_triggers],
        "plugins": [{"name": plugin.name, "params": plugin.params} for plugin in sampling.plugins],
        "stop": list(settings.stop),
        "ignore_eos": settings.ignore_eos,
        "min_tokens": settings.min_tokens,
        "stream": settings.stream,
        "n_probs": settings.num_logprobs or 0,
        "post_sampling_probs": settings.post_sampling_probs,
    }


def describe_probabilities(
    entries: Iterable[TokenLogprob], *, is_post_sampling: bool
) -> list[dict[str, Any]]:
    """Give ``completion_probabilities``: log-probabilities, or probabilities after sampling."""
    top_name = "top_probs" if is_post_sampling else "top_logprobs"
    return [
        _candidate(entry.chosen, is_post_sampling)
        | {top_name: [_candidate(one, is_post_sampling) for one in entry.top]}
        for entry in entries
    ]


@dataclass(slots=True)
class CompletionAnswer:
    """Writes the documents of one request."""

    model: str
    request: CompletionRequest
    prompts: tuple[str, ...]
    num_prompt_tokens: tuple[int, ...]

    def whole(self, choice: Choice) -> dict[str, Any]:
        """Give the answer of one choice."""
        document = self.ending(choice.index, choice.done, choice.slot)
        document["content"] = choice.text
        document["has_new_line"] = "\n" in choice.text
        if self.request.return_tokens:
            document["tokens"] = choice.token_ids
        if choice.logprobs:
            document["completion_probabilities"] = self.probabilities(choice.logprobs)
        return self.select(document)

    def probabilities(self, entries: Iterable[TokenLogprob]) -> list[dict[str, Any]]:
        """Give the probabilities of some tokens."""
        is_post_sampling = self.request.settings.post_sampling_probs
        return describe_probabilities(entries, is_post_sampling=is_post_sampling)

    def ending(self, index: int, done: Done, slot: int) -> dict[str, Any]:
        """Give what is known at the end of a choice, without its text."""
        settings = self.request.settings
        sampling = sampling_of_choice(settings.sampling, index % settings.num_choices)
        return {
            "index": index,
            "content": "",
            "tokens": [],
            "id_slot": slot,
            "stop": True,
            "model": self.model,
            "tokens_predicted": done.num_completion_tokens,
            "tokens_evaluated": done.num_prompt_tokens,
            "generation_settings": describe_settings(sampling, settings, self.request.n_predict),
            "prompt": self.prompts[index // settings.num_choices],
            "has_new_line": False,
            "truncated": done.truncated,
            "stop_type": _STOP_TYPES[done.finish_reason],
            "stopping_word": done.stop_word,
            "tokens_cached": done.num_prompt_tokens + done.num_completion_tokens,
            "timings": timings_object(done),
        }

    def select(self, document: dict[str, Any]) -> dict[str, Any]:
        """Keep the fields the request asked for (``a/b`` is field b of a)."""
        wanted = self.request.response_fields
        if not wanted:
            return document
        chosen = {}
        for path in wanted:
            value: Any = document
            for name in path.split("/"):
                value = value.get(name) if isinstance(value, dict) else None
            if value is not None:
                chosen[path.rpartition("/")[2]] = value
        return chosen


class CompletionRecipe(msgspec.Struct, frozen=True, kw_only=True, tag="completion"):
    """All that a stream needs to be written, now or by another gateway."""

    answer: CompletionAnswer
    num_jobs: int

    def make_writer(self) -> "CompletionChunks":
        """Begin to write it."""
        return CompletionChunks(self.answer, self.num_jobs)


@dataclass(slots=True)
class CompletionChunks:
    """Streams a run in llama-server's frames; there is no ``[DONE]`` at the end."""

    answer: CompletionAnswer
    num_jobs: int
    is_native: bool = True
    _choices: list[Choice] = field(default_factory=list)
    _held: list[list[int]] = field(default_factory=list)
    """By choice, the tokens whose text is not complete yet: they come with it."""

    def __post_init__(self) -> None:
        self._choices = [Choice(index) for index in range(self.num_jobs)]
        self._held = [[] for _ in range(self.num_jobs)]

    def start(self) -> bytes:
        """Give nothing: the first frame is the first text."""
        return b""

    def write(self, event: ChoiceEvent) -> bytes:
        """Give a frame for new text, for progress if it was asked for, and for the end."""
        index, content = event
        choice = self._choices[index]
        match content:
            case Tokens():
                return self._write_tokens(choice, content)
            case Started():
                choice.slot = content.slot
                choice.done = Done(FinishReason.LENGTH, 0, content.num_cached_tokens, 0)
            case Progress() if self.answer.request.return_progress:
                return self._write_progress(choice, content)
            case Done():
                document = self.answer.ending(index, content, choice.slot)
                document["tokens"] = self._held[index]
                document["has_new_line"] = any("\n" in text for text in choice.texts)
                return data_line(self.answer.select(document))
        return b""

    def end(self) -> bytes:
        """Give nothing more."""
        return b""

    def _write_tokens(self, choice: Choice, content: Tokens) -> bytes:
        choice.token_ids.extend(content.token_ids)
        if "\n" in content.text and not choice.texts:
            choice.texts.append("\n")
        held = self._held[choice.index]
        held.extend(content.token_ids)
        if not content.text and not content.logprobs:
            return b""
        frame = self._frame(choice) | {"content": content.text, "tokens": held[:]}
        held.clear()
        if content.logprobs:
            frame["completion_probabilities"] = self.answer.probabilities(content.logprobs)
        return data_line(frame)

    def _write_progress(self, choice: Choice, content: Progress) -> bytes:
        progress = {
            "total": content.num_prompt_tokens,
            "cache": choice.done.num_cached_tokens,
            "processed": content.num_processed,
        }
        return data_line(self._frame(choice) | {"prompt_progress": progress})

    def _frame(self, choice: Choice) -> dict[str, Any]:
        return {
            "index": choice.index,
            "content": "",
            "tokens": [],
            "stop": False,
            "id_slot": choice.slot,
            "tokens_predicted": len(choice.token_ids),
            "tokens_evaluated": self.answer.num_prompt_tokens[
                choice.index // self.answer.request.settings.num_choices
            ],
        }


def _trigger(trigger: GrammarTrigger) -> dict[str, Any]:
    return {
        "type": "token" if trigger.token >= 0 else "word" if trigger.word else "pattern",
        "value": trigger.word or trigger.pattern,
        "token": trigger.token,
    }


def _candidate(candidate: Candidate, is_post_sampling: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": candidate.id,
        "token": token_text(candidate),
        "bytes": token_bytes(candidate),
    }
    logprob = finite(candidate.logprob)
    if is_post_sampling:
        return described | {"prob": math.exp(logprob)}
    return described | {"logprob": logprob}
