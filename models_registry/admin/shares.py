"""How a model's requests are split between its deployments, in per cent, as pages show it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from models_registry.models import Deployment

NOTHING = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Split:
    """What the deployments of a model that take requests have together."""

    num_serving: int
    total: int

    def describe(self, deployment: Deployment) -> str:
        """Say how much of the requests goes to a deployment while all of them serve."""
        if not _takes_requests(deployment):
            return NOTHING
        if not self.total:
            # Where all stand by, all are alike.
            return _percent(1, self.num_serving)
        return _percent(deployment.share, self.total) if deployment.share else "stands by"


def split_between(deployments: Iterable[Deployment]) -> Split:
    """Add up the deployments of one model."""
    shares = [one.share or 0 for one in deployments if _takes_requests(one)]
    return Split(len(shares), sum(shares))


def with_split(deployments: QuerySet[Deployment]) -> QuerySet[Deployment]:
    """Add to each what its model's deployments have together, for ``describe_split``."""
    alike = Deployment.objects.filter(model=OuterRef("model"), enabled=True, is_draining=False)
    of_model = alike.order_by().values("model")

    def read(sums: Any) -> Any:
        found = of_model.annotate(sums=sums).values("sums")
        return Coalesce(Subquery(found, output_field=IntegerField()), Value(0))

    return deployments.annotate(split_total=read(Sum(F("share"))), split_count=read(Count("pk")))


def describe_split(deployment: Deployment) -> str:
    """Say how much of its model's requests a deployment of ``with_split`` gets."""
    found: Any = deployment
    return Split(found.split_count, found.split_total).describe(deployment)


def show_split(deployment: Deployment) -> SafeString:
    """Show what all deployments of the model get, with the values that this one has here."""
    others: list[Deployment] = []
    if deployment.model_id:
        alike = Deployment.objects.filter(model=deployment.model_id)
        others = list(alike.exclude(pk=deployment.pk).order_by("slug"))
    split = split_between([deployment, *others])
    rows = [(one, split.describe(one), one is deployment) for one in (deployment, *others)]
    context = {"rows": rows, "is_alone": not others, "is_known": bool(deployment.model_id)}
    return render_to_string("models_registry/split.html", context)


def _takes_requests(deployment: Deployment) -> bool:
    return deployment.enabled and not deployment.is_draining


def _percent(part: int, whole: int) -> str:
    percent = round(100 * part / whole)
    return f"{percent} %" if percent or not part else "under 1 %"
