"""From a conversation to a running generation: what the model gets, and how its answers are read.

Every API that chats, and the socket, brings its requests into this form.
"""

from dataclasses import dataclass, replace
from typing import Any

from inference.protocol.text import RenderChat
from llamero import dispatch
from llamero.accounts.selectors import Caller
from llamero.api.generation import GenerationSettings, Keep, Prompt, open_run
from llamero.api.questions import ask_prompt
from llamero.api.run import GenerationRun
from llamero.api.threads import run_in_thread, slow_threads
from llamero.api.turn import AS_THE_MODEL_LIKES, NO_TOOLS, ReasoningWish, ToolUse, TurnFormat
from llamero.api.turn.plan import plan_turn
from models_registry.selectors import ServedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A validated chat request. ``prefill`` is the beginning of the answer, where it is given.

    Unless ``begins_turn`` the prompt ends with the messages, and the model chooses who speaks.
    ``is_legacy``: its tools came as OpenAI's older ``functions``, and calls go back in that way.
    """

    messages: tuple[dict[str, Any], ...]
    prefill: str = ""
    begins_turn: bool = True
    settings: GenerationSettings
    include_usage: bool = False
    template_kwargs: dict[str, Any]
    tools: ToolUse = NO_TOOLS
    is_legacy: bool = False
    reasoning: ReasoningWish = AS_THE_MODEL_LIKES


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedChat:
    """A chat as the model gets it, as text and as tokens, and how its answers are to be read."""

    served: ServedModel
    text: str
    prompt: Prompt
    settings: GenerationSettings
    turn: TurnFormat


async def prepare_chat(*, served: ServedModel, request: ChatRequest) -> PreparedChat:
    """Render the messages, and settle how the model answers; raises LlameroError or EngineError."""
    facts = await dispatch.get_dispatcher().facts(served.deployment)
    planned = plan_turn(facts.chat_template, request.tools, request.reasoning)
    has_prefill = bool(request.prefill)
    question = RenderChat(
        messages=planned.settle_history(request.messages),
        tools=planned.definitions,
        add_generation_prompt=request.begins_turn,
        template_kwargs=planned.variables | request.template_kwargs,
        prefill=request.prefill,
        no_reasoning=planned.closed_reasoning(has_prefill=has_prefill),
    )
    rendered = await ask_prompt(served.deployment, question)
    turn = planned.turn_after(rendered.prompt)
    settings = request.settings
    if not turn.is_plain:
        sampling = await run_in_thread(
            lambda: planned.constrain(settings.sampling, turn, has_prefill=has_prefill),
            slow_threads if planned.tools.callable_tools else None,
        )
        settings = replace(settings, sampling=sampling, reasoning=turn.reasoning_marks)
    return PreparedChat(
        served=served, text=rendered.prompt, prompt=rendered.tokens, settings=settings, turn=turn
    )


async def open_chat(
    *, chat: PreparedChat, caller: Caller, keep: Keep | None = None
) -> GenerationRun:
    """Start the choices of a chat; raises LlameroError or EngineError."""
    return await open_run(
        served=chat.served,
        prompts=[chat.prompt],
        param="messages",
        settings=chat.settings,
        caller=caller,
        keep=keep,
    )
