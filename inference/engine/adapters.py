"""Which adapters does a job compute with?"""

import math

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import Loras
from inference.protocol.replicas import MAX_LORA_SCALE, AdapterFacts


def settle_adapters(asked: Loras | None, known: tuple[AdapterFacts, ...]) -> Loras:
    """Give the adapters that act, in one spelling for one meaning; raises EngineError.

    Jobs with the same result may share a batch and cells. A job that chooses names all it wants:
    what it leaves out does not act. One that chooses nothing gets the deployment's own scales.
    """
    if asked is None:
        asked = tuple((index, adapter.scale) for index, adapter in enumerate(known))
    scales: dict[int, float] = {}
    for index, scale in asked:
        if not 0 <= index < len(known):
            raise _refuse(f"there is no adapter {index}; {_list(known)}")
        if index in scales:
            raise _refuse(f"adapter {index} is there twice")
        if not abs(scale) <= MAX_LORA_SCALE or math.isnan(scale):
            raise _refuse(f"the scale of adapter {index} must be within {MAX_LORA_SCALE:g} of 0")
        scales[index] = scale
    return tuple((index, scales[index]) for index in sorted(scales) if scales[index])


def _list(known: tuple[AdapterFacts, ...]) -> str:
    if not known:
        return "this deployment has none"
    return "there are " + ", ".join(f"{at} ({one.name})" for at, one in enumerate(known))


def _refuse(problem: str) -> EngineError:
    return EngineError(ErrorCode.INVALID_SAMPLING, f"lora: {problem}.", param="lora")
