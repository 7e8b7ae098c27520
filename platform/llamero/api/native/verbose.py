"""llama-server's ``__verbose``: its own document of an answer, inside OpenAI's."""

from typing import Any

from llamero import dispatch
from llamero.api.collect import Choice
from llamero.api.generation import GenerationSettings
from llamero.api.native.completion_answer import CompletionAnswer
from llamero.api.native.completion_request import CompletionRequest
from llamero.api.native.generation_settings import model_side
from models_registry.selectors import ServedModel


async def describe_verbosely(
    served: ServedModel, settings: GenerationSettings, prompt: str, choice: Choice
) -> dict[str, Any]:
    """Describe the first choice of a request, with its prompt and all that was in effect."""
    facts = await dispatch.get_dispatcher().facts(served.deployment)
    request = CompletionRequest(
        settings=settings,
        n_predict=-1 if settings.max_tokens is None else settings.max_tokens,
        return_tokens=True,
        response_fields=(),
    )
    answer = CompletionAnswer(
        model=served.id,
        request=request,
        prompts=(prompt,),
        num_prompt_tokens=(choice.done.num_prompt_tokens,),
        model_side=model_side(served, facts, settings),
    )
    return answer.whole(choice)
