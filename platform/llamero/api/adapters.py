"""Which LoRA adapters does a request choose, of those that its deployment has?"""

from typing import Any

from inference.protocol.jobs import Loras
from inference.protocol.replicas import MAX_LORA_SCALE, AdapterFacts
from llamero.errors import InvalidValue

MAX_ADAPTERS = 64

AdapterChoice = tuple[tuple[int | str, float], ...]
"""Adapters by their place in the deployment's list or by name, each with its scale."""


def read_adapters(value: Any) -> AdapterChoice:
    """Read llama-server's ``[{"id": 0, "scale": 0.5}, …]``; an id may also be a name."""
    if not isinstance(value, list) or len(value) > MAX_ADAPTERS:
        raise InvalidValue(
            "lora", f"lora must be a list of at most {MAX_ADAPTERS} objects with id and scale."
        )
    return tuple(_read_one(one, f"lora[{at}]") for at, one in enumerate(value))


def resolve_adapters(choice: AdapterChoice | None, known: tuple[AdapterFacts, ...]) -> Loras | None:
    """Find the chosen adapters; those that are not named do not act."""
    if choice is None:
        return None
    places = {adapter.name: at for at, adapter in enumerate(known)}
    found: dict[int, float] = {}
    for at, (asked, scale) in enumerate(choice):
        place = places.get(asked, -1) if isinstance(asked, str) else asked
        if not 0 <= place < len(known):
            raise InvalidValue(f"lora[{at}].id", f"lora[{at}].id: {_say_missing(asked, known)}")
        if place in found:
            raise InvalidValue(f"lora[{at}].id", f"lora[{at}].id names an adapter again.")
        found[place] = scale
    return tuple(found.items())


def _read_one(value: Any, path: str) -> tuple[int | str, float]:
    if not isinstance(value, dict):
        raise InvalidValue(path, f"{path} must be an object with id and scale.")
    asked, scale = value.get("id"), value.get("scale")
    if isinstance(asked, bool) or not isinstance(asked, int | str):
        raise InvalidValue(f"{path}.id", f"{path}.id must be an adapter's number or name.")
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise InvalidValue(f"{path}.scale", f"{path}.scale must be a number.")
    if not abs(scale) <= MAX_LORA_SCALE:
        limit = f"{MAX_LORA_SCALE:g}"
        raise InvalidValue(f"{path}.scale", f"{path}.scale must be between -{limit} and {limit}.")
    return asked, float(scale)


def _say_missing(asked: int | str, known: tuple[AdapterFacts, ...]) -> str:
    if not known:
        return "this model has no adapters."
    names = ", ".join(f"{at} ({adapter.name})" for at, adapter in enumerate(known))
    return f"there is no adapter {str(asked)[:64]}; there are {names}."
