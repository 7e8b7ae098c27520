"""/props and /slots: how a model and its replicas are, never what they work on."""

import re
from typing import Any
from zlib import crc32

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.errors import EngineError
from inference.protocol.replicas import ModelFacts, ReplicaStatus, SlotStats
from llamero import dispatch
from llamero.accounts.scopes import Scope
from llamero.api.async_view import json_response
from llamero.api.errors import RETRY_SECONDS
from llamero.api.model_choice import ANY_KIND
from llamero.api.native.generation_settings import describe_defaults
from llamero.api.native.view import NativeView
from llamero.errors import LlameroError
from models_registry.models import DeploymentState

# How templates go through the calls of a message, and take their arguments and parts of contents.
_EACH_CALL = re.compile(r"""in\s+[\w.]+(\.|\[['"])tool_calls""")
_OBJECT_ARGUMENTS = re.compile(r"arguments(['\"]\])?\s*(\|\s*(tojson|items)|\.items|is\s+mapping)")
_TYPED_CONTENT = re.compile(r"""(\.|\[['"])type(['"]\])?\s*==\s*['"](text|image)""")
_NO_SYSTEM = re.compile(r"raise_exception\([^)]*\bsystem\b", re.IGNORECASE)


class PropsView(NativeView):
    """Describe a served model and its settings."""

    scope = Scope.MODELS

    def prepare(self, request: Request) -> None:
        """Find the model."""
        self.served = self.find_model(request, ANY_KIND)

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Describe it; file paths stay on the server."""
        served, dispatcher = self.served, dispatch.get_dispatcher()
        facts, is_sleeping = await self._read_facts()
        replicas = await dispatcher.replicas(served.deployment)
        return json_response(
            {
                "default_generation_settings": {
                    "params": describe_defaults(served, facts),
                    "n_ctx": facts.context_length,
                },
                "total_slots": sum(one.num_slots for one in replicas),
                "model_alias": served.id,
                "model_path": f"{served.id}.gguf",
                "model_ftype": served.quantization,
                "modalities": {"vision": False, "audio": False, "video": False},
                "media_marker": "<__media__>",
                "sampler_plugins": list(facts.sampler_plugins),
                "chat_template": facts.chat_template,
                "chat_template_caps": _describe_template(facts.chat_template),
                "bos_token": facts.bos_token,
                "eos_token": facts.eos_token,
                "build_info": "llamero",
                "endpoint_slots": True,
                "endpoint_props": False,
                "endpoint_metrics": True,
                "ui": False,
                "ui_settings": {},
                "is_sleeping": is_sleeping,
                "cors_proxy_enabled": False,
            }
        )

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Refuse to change what others use, as llama-server does without --props."""
        raise LlameroError(
            501,
            "properties_are_not_shared",
            "Properties cannot be changed here: they belong to the deployment, in the admin.",
        )

    async def _read_facts(self) -> tuple[ModelFacts, bool]:
        """Give what is known of the model, and whether it sleeps; a look at it wakes nothing."""
        served = self.served
        try:
            facts = await dispatch.get_dispatcher().facts(served.deployment, waits=False)
        except EngineError:
            if served.state != DeploymentState.SLEEPING:
                raise
            return ModelFacts(context_length=served.profile.context_length), True
        return facts, False


class SlotsView(NativeView):
    """List the slots of a model's replicas; never whose work they do, nor its text."""

    scope = Scope.MODELS

    def prepare(self, request: Request) -> None:
        """Find the model's deployments."""
        self.routes = self.find_routes(request)
        self.must_have_idle = bool(request.query_params.get("fail_on_no_slot"))

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """List them, replica by replica."""
        dispatcher, routes = dispatch.get_dispatcher(), {one.deployment: one for one in self.routes}
        found = await dispatcher.beating_replicas()
        replicas = [one for one in found if one.deployment in routes]
        jobs = [slot.job for one in replicas for slot in one.slots if slot.job]
        # A heartbeat may be a second old: a job that has ended since is none.
        running = await dispatcher.find_running(jobs)
        slots = [
            _describe_slot(one, slot if slot.job in running else SlotStats(id=slot.id))
            | {"speculative": bool(routes[one.deployment].profile.speculation)}
            for one in sorted(replicas, key=lambda one: one.replica)
            for slot in one.slots
        ]
        if self.must_have_idle and all(slot["is_processing"] for slot in slots):
            raise LlameroError(503, "unavailable", "No slot is free.", retry_after=RETRY_SECONDS)
        return json_response([slot | {"id": index} for index, slot in enumerate(slots)])


class SlotView(NativeView):
    """POST /slots/{id}: refused, as llama-server does without a place to save slots.

    Whose prompt a slot holds is nobody else's business, and saving, restoring or erasing it would
    make it so. Prefixes are kept, found and dropped without being asked.
    """

    scope = Scope.MODELS

    def prepare(self, request: Request) -> None:
        """Find the model."""
        self.served = self.find_model(request, ANY_KIND)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Refuse."""
        raise LlameroError(
            501,
            "slots_are_not_shared",
            "Slots cannot be saved, restored or erased: requests of others use them too. "
            "Computed prefixes are kept by themselves, also on disk where the deployment says so.",
        )


def _describe_template(template: str) -> dict[str, Any]:
    """Tell what a chat template speaks of. Its text is looked at; it is not tried."""
    has_calls = "tool_calls" in template
    return {
        "supports_tools": "tools" in template,
        "supports_tool_calls": has_calls,
        "supports_parallel_tool_calls": has_calls and bool(_EACH_CALL.search(template)),
        "supports_object_arguments": has_calls and bool(_OBJECT_ARGUMENTS.search(template)),
        "supports_system_role": bool(template) and not _NO_SYSTEM.search(template),
        "supports_string_content": bool(template),
        "supports_typed_content": bool(_TYPED_CONTENT.search(template)),
        "supports_preserve_reasoning": "reasoning_content" in template,
        "supports_reasoning_effort": "reasoning_effort" in template,
    }


def _describe_slot(replica: ReplicaStatus, slot: SlotStats) -> dict[str, Any]:
    return {
        "id": slot.id,
        "id_task": crc32(slot.job.encode()) if slot.job else -1,
        "n_ctx": replica.facts.context_length,
        "is_processing": bool(slot.job),
        "n_prompt_tokens": slot.num_prompt_tokens,
        "n_prompt_tokens_processed": slot.num_prompt_processed,
        "n_prompt_tokens_cache": slot.num_cached_tokens,
        "next_token": [
            {
                "has_next_token": bool(slot.job),
                "has_new_line": slot.has_new_line,
                "n_remain": slot.num_remaining,
                "n_decoded": slot.num_decoded,
            }
        ],
    }
