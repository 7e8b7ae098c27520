"""The sampler plug-ins that a request asks for."""

from collections.abc import Sequence
from typing import Any

from inference.protocol.replicas import ModelFacts
from inference.protocol.sampling import PluginSampler
from llamero.errors import InvalidValue

MAX_PLUGINS = 8
MAX_PARAMS = 64
_MAX_CHARS = 4096
_MAX_NUMBER = 2**53


def read_plugins(value: Any) -> tuple[PluginSampler, ...]:
    """Read ``[{"name": …, "params": {…}}, …]``."""
    if not isinstance(value, list) or len(value) > MAX_PLUGINS:
        raise _invalid("plugins", f"must be a list of at most {MAX_PLUGINS} objects")
    return tuple(_read_plugin(item, f"plugins[{i}]") for i, item in enumerate(value))


def check_plugins(plugins: Sequence[PluginSampler], facts: ModelFacts) -> None:
    """Refuse plug-ins that the model's replicas do not have."""
    for i, plugin in enumerate(plugins):
        if plugin.name not in facts.sampler_plugins:
            known = ", ".join(facts.sampler_plugins) or "none"
            name = plugin.name[:64]
            raise _invalid(f"plugins[{i}].name", f"names no plug-in: '{name}'; there are: {known}")


def _read_plugin(value: Any, path: str) -> PluginSampler:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise _invalid(path, "must be an object with a name")
    params = value.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict) or len(params) > MAX_PARAMS:
        raise _invalid(f"{path}.params", f"must be an object of at most {MAX_PARAMS} values")
    for name, param in params.items():
        is_short = isinstance(param, str) and len(param) <= _MAX_CHARS
        is_number = isinstance(param, int | float) and abs(param) <= _MAX_NUMBER
        if not is_short and not is_number:
            raise _invalid(
                f"{path}.params.{name[:64]}",
                f"must be true, false, a number within 2**53 or at most {_MAX_CHARS} characters",
            )
    return PluginSampler(name=value["name"], params=params)


def _invalid(path: str, problem: str) -> InvalidValue:
    return InvalidValue(path, f"{path} {problem}.")
