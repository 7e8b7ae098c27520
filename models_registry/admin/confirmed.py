"""Steps that change what is served: a button asks, a page confirms, the history tells.

All is done by POST, so that no link, and no page elsewhere, can do it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do with an object.

    ``foretell`` says what will happen, one line each; ``carry_out`` does it and says what has; it
    raises ValidationError where it cannot.
    """

    name: str
    label: str
    icon: str
    foretell: Callable[[Any], list[str]]
    carry_out: Callable[[Any], str]
    is_dangerous: bool = False


class ConfirmedSteps:
    """Adds steps to an object's page in the admin: a mixin for a ModelAdmin."""

    steps: tuple[Step, ...] = ()
    # How the history tells of a step; what else is logged is the admin's own.
    admin_site: Any
    opts: Any

    def list_steps(self, obj: Any) -> list[Step]:
        """Give the steps that make sense now."""
        return list(self.steps)

    def may_take_steps(self, request: HttpRequest, obj: Any) -> bool:
        """Whether somebody may take them."""
        return bool(self.has_change_permission(request, obj))  # type: ignore[attr-defined]

    def get_urls(self) -> list[URLPattern]:
        """Add the address of each step."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_step"
        view = self.admin_site.admin_view(self.take_step)
        urls: list[URLPattern] = super().get_urls()  # type: ignore[misc]
        return [path("<path:object_id>/step/<slug:step>/", view, name=name), *urls]

    def take_step(self, request: HttpRequest, object_id: str, step: str) -> HttpResponse:
        """Ask whether it is meant; do it when that was confirmed."""
        obj = self.get_object(request, object_id)  # type: ignore[attr-defined]
        if obj is None:
            raise Http404
        if not self.may_take_steps(request, obj):
            raise PermissionDenied
        if request.method != "POST":
            # A confirmation that is opened again by its address: its button is on the page.
            return self._back_to(obj)
        chosen = next((one for one in self.list_steps(obj) if one.name == step), None)
        if chosen is None:
            self._tell(request, f"{obj} has changed meanwhile: that makes no sense any more.")
            return self._back_to(obj)
        if "confirmed" not in request.POST:
            return self._ask(request, obj, chosen)
        try:
            words = chosen.carry_out(obj)
        except ValidationError as error:
            self._tell(request, " ".join(error.messages))
            return self._back_to(obj)
        self.log_change(request, obj, f"{chosen.label}: {words}")  # type: ignore[attr-defined]
        self._tell(request, words, messages.SUCCESS)
        return self._back_to(obj)

    def _ask(self, request: HttpRequest, obj: Model, step: Step) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"{step.label}: {obj}?",
            "opts": self.opts,
            "original": obj,
            "step": step,
            "consequences": step.foretell(obj),
            "back_url": self._url_of(obj),
        }
        return TemplateResponse(request, "models_registry/confirm_step.html", context)

    def _tell(self, request: HttpRequest, words: str, level: int = messages.ERROR) -> None:
        self.message_user(request, words, level)  # type: ignore[attr-defined]

    def _back_to(self, obj: Model) -> HttpResponse:
        return HttpResponseRedirect(self._url_of(obj))

    def _url_of(self, obj: Model) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=[obj.pk])


class StepsAboveForm(ConfirmedSteps):
    """Shows the steps on the page of the object, above its form, to those who may take them."""

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Offer what can be done with it now."""
        known = self.get_object(request, object_id)  # type: ignore[attr-defined]
        may_act = known is not None and self.may_take_steps(request, known)
        steps = self.list_steps(known) if known is not None and may_act else []
        context = {"steps": steps, **(extra_context or {})}
        response: HttpResponse = super().change_view(  # type: ignore[misc]
            request, object_id, form_url, context
        )
        return response
