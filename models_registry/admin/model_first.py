"""A new deployment begins with its model: what that is decides what can be proposed."""

from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from models_registry.models import Deployment, Model, VersionState
from models_registry.names import deployment_name_for

MAX_SHOWN = 60


def choose_model_first(model_admin: Any, request: HttpRequest) -> HttpResponse | None:
    """Give the page that asks for the model; None where it is known, or there is but one."""
    if request.GET.get("model", "").isdecimal() or not model_admin.has_add_permission(request):
        return None
    models = Model.objects.annotate(num_deployments=Count("deployments", distinct=True))
    text = request.GET.get("q", "").replace("\x00", "")[:100]
    if not text and models.count() == 1:
        values = request.GET.copy()
        values["model"] = str(models.get().pk)
        request.GET = values  # type: ignore[assignment]
        return None
    found = models.filter(Q(slug__icontains=text) | Q(title__icontains=text))
    ready = Count("versions", filter=Q(versions__state=VersionState.READY), distinct=True)
    found = found.annotate(num_ready=ready).order_by("num_deployments", "slug")
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Which model shall be deployed?",
        "opts": model_admin.opts,
        "models": found[:MAX_SHOWN],
        "num_more": max(0, found.count() - MAX_SHOWN),
        "text": text,
    }
    return TemplateResponse(request, "models_registry/model_first.html", context)


def propose_name(model: Model) -> str:
    """Give a name for the model's next deployment that is free."""
    name = deployment_name_for(model.slug)
    alike = Deployment.objects.filter(slug__startswith=name)
    taken = set(alike.values_list("slug", flat=True))
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(one for one in numbered if one not in taken)
