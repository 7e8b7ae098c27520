"""What a model has served, for its page."""

from datetime import timedelta
from typing import Any

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from llamero.console.access import may_see, staff_only
from llamero.usage.models import UsageHour
from llamero.usage.selectors import Subject, UsageSum, sum_usage

_COUNTS = ("num_jobs", "num_prompt_tokens", "num_cached_tokens", "num_completion_tokens")


@require_safe
@never_cache
@staff_only
@may_see("models_registry.view_model")
def show_model_usage(request: HttpRequest, pk: int) -> HttpResponse:
    """Give the tokens of a day, of a month and of all time; nothing to who may not see usage."""
    if not request.user.has_perm("usage.view_usagehour"):
        return HttpResponse("")
    now, subject = timezone.now(), Subject(model_id=pk)
    hours = UsageHour.objects.filter(model_id=pk)
    sums: dict[str, Any] = hours.aggregate(**{one: Sum(one) for one in _COUNTS})
    counts: dict[str, Any] = {name: count or 0 for name, count in sums.items()}
    spans = [
        ("Last 24 hours", sum_usage(subject, now - timedelta(days=1))),
        ("Last 30 days", sum_usage(subject, now - timedelta(days=30))),
        ("Ever", UsageSum(**counts)),
    ]
    return render(request, "console/model_usage.html", {"spans": spans})
