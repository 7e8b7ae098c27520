"""POST /infill: generate what stands in a gap of a text."""

from typing import Any

from rest_framework.request import Request

from inference.protocol.replicas import ModelFacts
from llamero.api.defaults import with_defaults
from llamero.api.fields import AnyValue, StrictBoolean, StrictString, validate
from llamero.api.generation import Prompt
from llamero.api.infill import ExtraFile, Gap, check_infill, fit, lay_out, read_gap
from llamero.api.model_choice import GENERATIVE
from llamero.api.native.completion import GeneratingView
from llamero.api.native.completion_request import (
    NativeGenerationSerializer,
    read_completion_request,
)
from llamero.api.resuming import read_run_id
from llamero.errors import InvalidValue

MAX_FILES = 256
_DEFAULT_FILE_NAME = "tmp"
_SHARE_FOR_ANSWER = 4
"""Where no number is given, a quarter of the context is kept for the answer."""


class InfillSerializer(NativeGenerationSerializer):
    """The fields of POST /infill. ``spm_infill`` puts the suffix first."""

    input_prefix = StrictString()
    input_suffix = StrictString()
    input_extra = AnyValue(required=False)
    prompt = StrictString(required=False)
    spm_infill = StrictBoolean(required=False)


class InfillView(GeneratingView):
    """Fill a gap as llama-server does; what is too long around it is cut."""

    serializer_class = InfillSerializer
    gap: Gap

    def prepare(self, request: Request) -> None:
        """Find the model and validate the body."""
        body = self.read_body(request)
        self.served = self.find_model(request, GENERATIVE, body)
        fields = with_defaults(validate(InfillSerializer, body), self.served.request_defaults)
        self.gap = Gap(
            before=fields["input_prefix"],
            behind=fields["input_suffix"],
            begun=fields.get("prompt", ""),
            files=_read_files(fields.get("input_extra", [])),
            is_suffix_first=fields.get("spm_infill", False),
        )
        self.completion = read_completion_request(fields, body)
        settings = self.completion.settings
        self.run_id = read_run_id(request, settings, settings.num_choices)
        self.waits_at = self.served.deployment

    async def make_prompts(self, facts: ModelFacts) -> list[Prompt]:
        """Tokenize what is around the gap, as much as fits."""
        check_infill(facts, status=501)
        gap = await read_gap(self.served.deployment, self.gap, facts, "input_prefix")
        room = facts.context_length // _SHARE_FOR_ANSWER
        wanted = self.completion.settings.max_tokens
        kept = fit(gap, facts, num_answer=room if wanted is None else min(wanted, room))
        return [lay_out(kept, facts, is_suffix_first=self.gap.is_suffix_first)]


def _read_files(value: Any) -> tuple[ExtraFile, ...]:
    if not isinstance(value, list) or len(value) > MAX_FILES:
        message = (
            f"input_extra must be a list of at most {MAX_FILES} objects with filename and text."
        )
        raise InvalidValue("input_extra", message)
    return tuple(_read_file(one, f"input_extra[{at}]") for at, one in enumerate(value))


def _read_file(value: Any, path: str) -> ExtraFile:
    if not isinstance(value, dict):
        raise InvalidValue(path, f"{path} must be an object with filename and text.")
    name, text = value.get("filename"), value.get("text")
    if not isinstance(text, str):
        raise InvalidValue(f"{path}.text", f"{path}.text must be a string.")
    if name is not None and not isinstance(name, str):
        raise InvalidValue(f"{path}.filename", f"{path}.filename must be a string.")
    return ExtraFile(name or _DEFAULT_FILE_NAME, text)
