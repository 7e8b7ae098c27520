"""What somebody has used in the last days, for themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from llamero.limits.left import BudgetLeft, read_left
from llamero.usage.reports import Group, Period, read_report, total_of
from llamero.usage.selectors import HOUR, Subject
from llamero.usage.shown import ShownLine, show_lines

DAYS = 30


@dataclass(frozen=True, slots=True)
class OwnUsage:
    """Sums of a user's jobs, with keys and in the playground."""

    total: ShownLine
    models: Sequence[ShownLine]
    keys: Sequence[ShownLine]


def read_own_usage(user: User) -> OwnUsage:
    """Read what a user's keys and pages have used; the last seconds are not in it yet."""
    ends = timezone.now().replace(minute=0, second=0, microsecond=0) + HOUR
    period, subject = Period(ends - timedelta(days=DAYS), ends), Subject(user_id=user.pk)
    models = read_report(period, (Group.MODEL,), subject)
    keys = read_report(period, (Group.KEY,), subject)
    return OwnUsage(show_lines(total_of(models))[0], show_lines(models), show_lines(keys))


def read_own_budgets(user: User) -> Sequence[BudgetLeft]:
    """Read what is left to somebody: of their own budgets, their keys' and their teams'."""
    teams = user.memberships.values("team")
    return read_left(Q(user=user) | Q(key__user=user) | Q(team__in=teams))
