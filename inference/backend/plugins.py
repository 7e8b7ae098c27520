"""Which samplers did the operator add, and how does a request's one become a function?

A plug-in is a factory: called with the request's parameters and the vocabulary, it gives a function
that is called for each token with the logits (float32, one per token of the vocabulary) and the
tokens so far, and edits the logits in place. It runs on the engine's thread and holds the GIL: what
it costs, every sequence of the step waits for.
"""

import functools
import importlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Protocol

import numpy as np

from inference.backend.base import Row
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.sampling import PluginSampler

logger = logging.getLogger(__name__)
GROUP = "llamero.samplers"
VARIABLE = "LLAMERO_SAMPLER_PLUGINS"


class Vocabulary(Protocol):
    """What a plug-in may ask about tokens; every Model answers."""

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Turn text into token ids."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """Give the bytes of a token as written, the names of control tokens included."""
        ...

    def is_end_of_generation(self, token: int) -> bool:
        """Tell whether a model ends its answer with this token."""
        ...


Edit = Callable[[Row, Sequence[int]], None]
Factory = Callable[[Mapping[str, object], Vocabulary], Edit]


@functools.cache
def installed_plugins() -> Mapping[str, Factory]:
    """Load the plug-ins of this process by name; raises EngineError where one cannot be.

    They come from the entry points of installed packages, and from the modules that the
    environment lists as ``module:attribute``; those are named by their attribute.
    """
    found: dict[str, Factory] = {}
    for entry in entry_points(group=GROUP):
        found[entry.name] = _load(entry.value, entry.load)
    for path in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        module, _, attribute = path.partition(":")
        found[attribute] = _load(path, functools.partial(_import, module, attribute))
    return found


def open_plugin(plugin: PluginSampler, vocabulary: Vocabulary) -> Edit:
    """Make the function of one request; raises EngineError."""
    factory = installed_plugins().get(plugin.name)
    if factory is None:
        raise _refused(f"There is no sampler plug-in named '{plugin.name}'.")
    try:
        edit = factory(plugin.params, vocabulary)
    except Exception as error:  # a stranger's code: whatever it raises, the client must read why
        logger.info("sampler plug-in %s refused its parameters", plugin.name, exc_info=True)
        raise _refused(f"The sampler plug-in '{plugin.name}' refuses: {error}") from None
    return functools.partial(_edit, plugin.name, edit)


def _edit(name: str, edit: Edit, row: Row, tokens: Sequence[int]) -> None:
    """Call a plug-in; what it does wrong ends its own job, with its name."""
    try:
        edit(row, tokens)
    except Exception as error:
        logger.exception("sampler plug-in %s failed", name)
        reason = type(error).__name__
        raise EngineError(
            ErrorCode.PLUGIN_FAILED, f"The sampler plug-in '{name}' failed with {reason}."
        ) from None
    if not row.max() < np.inf:
        raise EngineError(
            ErrorCode.PLUGIN_FAILED, f"The sampler plug-in '{name}' left logits that are no number."
        )


def _load(path: str, load: Callable[[], object]) -> Factory:
    try:
        factory = load()
    except Exception as error:
        raise _broken(path, f"{type(error).__name__}: {error}") from error
    if not callable(factory):
        raise _broken(path, "it cannot be called")
    return factory


def _import(module: str, attribute: str) -> object:
    return getattr(importlib.import_module(module), attribute)


def _broken(path: str, reason: str) -> EngineError:
    return EngineError(
        ErrorCode.ENGINE_FAILED, f"The sampler plug-in '{path}' could not be loaded: {reason}"
    )


def _refused(message: str) -> EngineError:
    return EngineError(ErrorCode.INVALID_SAMPLING, message, param="plugins")
