"""Prompts and inputs that may be text or token ids, one or many."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from inference.protocol.replicas import ModelFacts
from inference.protocol.text import Tokenize
from llamero import dispatch
from llamero.api.questions import ask_tokens
from llamero.errors import InvalidValue, NotSupported

Part = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PromptText:
    """One prompt: text, token ids, or both in turn. ``path`` is its place in the request."""

    parts: tuple[Part, ...]
    path: str

    @property
    def is_text(self) -> bool:
        """Whether it is one plain text."""
        return len(self.parts) == 1 and isinstance(self.parts[0], str)


def read_prompts(value: Any, param: str) -> list[PromptText]:
    """Read OpenAI's forms: text, texts, ids, or lists of ids; never a mixture."""
    if isinstance(value, str):
        return [PromptText((value,), param)]
    if not isinstance(value, list):
        raise InvalidValue(param, f"{param} must be a string or a list of strings or token ids.")
    if not value:
        raise InvalidValue(param, f"{param} must not be empty.")
    if isinstance(value[0], str):
        for i, item in enumerate(value):
            if not isinstance(item, str):
                raise InvalidValue(param, f"{param}[{i}] must be a string like the others.")
        return [PromptText((item,), f"{param}[{i}]") for i, item in enumerate(value)]
    if isinstance(value[0], list):
        return [
            PromptText((read_ids(item, param, f"{param}[{i}]"),), f"{param}[{i}]")
            for i, item in enumerate(value)
        ]
    return [PromptText((read_ids(value, param, param),), param)]


def read_native_prompts(value: Any, param: str) -> list[PromptText]:
    """Read llama-server's forms: those of OpenAI, and prompts that mix text and ids."""
    if not isinstance(value, list | dict) or not value:
        return read_prompts(value, param)
    if isinstance(value, dict) or any(type(item) is int for item in value):
        return [read_native_prompt(value, param, param)]
    return [read_native_prompt(item, param, f"{param}[{i}]") for i, item in enumerate(value)]


def read_native_prompt(value: Any, param: str, path: str) -> PromptText:
    """Read one prompt: a text, ids and texts in turn, or an object with ``prompt_string``."""
    if isinstance(value, str):
        return PromptText((value,), path)
    if isinstance(value, dict):
        text = value.get("prompt_string")
        if value.get("multimodal_data"):
            raise NotSupported(param, f"{path}.multimodal_data is not supported.")
        if "content" in value:
            text = _join_parts(value["content"], param, f"{path}.content")
        if not isinstance(text, str):
            raise InvalidValue(param, f"{path}.prompt_string must be a string.")
        return PromptText((text,), path)
    if not isinstance(value, list) or not value:
        raise InvalidValue(param, f"{path} must be a string or a list, and not empty.")
    parts: list[Part] = []
    for are_texts, items in groupby(enumerate(value), lambda pair: isinstance(pair[1], str)):
        if are_texts:
            parts += [text for _, text in items]
        else:
            parts.append(_take_ids(items, param, path))
    return PromptText(tuple(parts), path)


def read_ids(value: Any, param: str, path: str) -> tuple[int, ...]:
    """Read a list of token ids; their upper bound is the vocabulary's."""
    if not isinstance(value, list) or not value:
        raise InvalidValue(param, f"{path} must be a list of token ids, and not empty.")
    return _take_ids(enumerate(value), param, path)


def _take_ids(numbered: Iterable[tuple[int, Any]], param: str, path: str) -> tuple[int, ...]:
    found: list[int] = []
    for i, token in numbered:
        if type(token) is not int or token < 0:
            raise InvalidValue(param, f"{path}[{i}] is no token id.", "invalid_token_id")
        found.append(token)
    return tuple(found)


def check_vocabulary(prompts: Sequence[PromptText], param: str, facts: ModelFacts) -> None:
    """Refuse ids the model does not have, by position."""
    for prompt in prompts:
        place = 0
        for part in prompt.parts:
            if isinstance(part, str) or max(part, default=0) < facts.num_vocab:
                place += 1 if isinstance(part, str) else len(part)
                continue
            i, token = next((i, t) for i, t in enumerate(part, place) if t >= facts.num_vocab)
            last = facts.num_vocab - 1
            raise InvalidValue(
                param,
                f"{prompt.path}[{i}]: the model has no token {token} (0 to {last}).",
                "invalid_token_id",
            )


async def tokenize_prompts(
    deployment: str, prompts: Sequence[PromptText], param: str, *, parse_special: bool
) -> list[tuple[int, ...]]:
    """Turn prompts into token ids; one without any starts from the start-of-text token."""
    found = await tokenize_parts(
        deployment, prompts, param, parse_special=parse_special, add_special=True
    )
    facts = await dispatch.get_dispatcher().facts(deployment)
    return [ids or _start_of_text(facts, param) for ids in found]


async def tokenize_parts(
    deployment: str,
    prompts: Sequence[PromptText],
    param: str,
    *,
    parse_special: bool,
    add_special: bool,
) -> list[tuple[int, ...]]:
    """Turn texts, ids, or both in turn into token ids, be there any or none."""
    facts = await dispatch.get_dispatcher().facts(deployment)
    check_vocabulary(prompts, param, facts)
    texts = _TextParts(deployment, param, parse_special)
    heads = [p.parts[0] for p in prompts if isinstance(p.parts[0], str)]
    tails = [part for p in prompts for part in p.parts[1:] if isinstance(part, str)]
    head_ids = iter(await texts.tokenize(heads, add_special=add_special))
    tail_ids = iter(await texts.tokenize(tails, add_special=False))
    found: list[tuple[int, ...]] = []
    for prompt in prompts:
        ids: list[int] = []
        for i, part in enumerate(prompt.parts):
            ids += part if not isinstance(part, str) else next(tail_ids if i else head_ids)
        found.append(tuple(ids))
    return found


@dataclass(frozen=True, slots=True)
class _TextParts:
    deployment: str
    param: str
    parse_special: bool

    async def tokenize(self, texts: list[str], *, add_special: bool) -> Sequence[Sequence[int]]:
        """Tokenize texts in one question, or none if there are none."""
        if not texts:
            return ()
        question = Tokenize(
            texts=tuple(texts), add_special=add_special, parse_special=self.parse_special
        )
        return (await ask_tokens(self.deployment, question, self.param)).tokens


def _start_of_text(facts: ModelFacts, param: str) -> tuple[int, ...]:
    for token in (facts.bos_token_id, facts.eos_token_id):
        if token >= 0:
            return (token,)
    raise InvalidValue(param, f"{param} is empty, and the model has no start-of-text token.")


def _join_parts(parts: Any, param: str, path: str) -> str:
    """Join the text parts of an input that is an object; none between them, as at llama-server."""
    if not isinstance(parts, list) or not parts:
        raise InvalidValue(param, f"{path} must be a list of text parts.")
    texts = []
    for i, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text" or not isinstance(part.get("text"), str):
            raise NotSupported(param, f"{path}[{i}]: only parts of type text are supported.")
        texts.append(part["text"])
    return "".join(texts)
