"""Which report is asked for."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib.auth import get_permission_codename, get_user_model
from django.utils import timezone
from unfold.widgets import UnfoldAdminDateWidget, UnfoldAdminSelectWidget

from llamero.accounts.models import ApiKey, Team
from llamero.accounts.targets import TARGETS
from llamero.usage.models import UsageAlert
from llamero.usage.reports import Group, Period
from llamero.usage.selectors import Subject
from models_registry.admin.few_choices import FewChoicesSelect
from models_registry.models import Model

MAX_DAYS = 400
DEFAULT_DAYS = 30
GROUPS = [(group.value, group.value.title()) for group in Group if group is not Group.HOUR]


def _choose(name: str, queryset: Any) -> "forms.ModelChoiceField[Any]":
    # Alerts have a foreign key of each name.
    widget = FewChoicesSelect(UsageAlert, name)
    return forms.ModelChoiceField(queryset, required=False, empty_label="All", widget=widget)


def _may_choose(user: Any, name: str) -> bool:
    """Whether somebody may see all the rows that a report can be narrowed to one of."""
    options = UsageAlert._meta.get_field(name).related_model._meta  # type: ignore[union-attr]
    code = get_permission_codename("view", options)
    return bool(user.has_perm(f"{options.app_label}.{code}"))


class ReportForm(forms.Form):
    """A period of whole days in UTC, whose usage is meant, and what there is a line for each of.

    Whose it may be is offered to those who may see them.
    """

    begins = forms.DateField(label="From", required=False, widget=UnfoldAdminDateWidget)
    ends = forms.DateField(label="To", required=False, widget=UnfoldAdminDateWidget)
    group = forms.ChoiceField(
        label="By", choices=GROUPS, required=False, widget=UnfoldAdminSelectWidget
    )
    model = _choose("model", Model.objects.order_by("slug"))
    key = _choose("key", ApiKey.objects.order_by("name", "pk"))
    user = _choose("user", get_user_model()._default_manager.order_by("username"))
    team = _choose("team", Team.objects.all())

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._withheld = [name for name in TARGETS if not _may_choose(user, name)]
        for name in self._withheld:
            del self.fields[name]

    def clean(self) -> dict[str, Any]:
        """Fill in the last thirty days, and refuse what is no period."""
        cleaned = super().clean() or {}
        for name in self._withheld:
            # An address that somebody else gave: all usage would be taken for that of one.
            if self.data.get(name):
                raise forms.ValidationError(f"You may not choose a {name}: leave “{name}” out.")
        today = timezone.now().date()
        ends = cleaned.get("ends") or today
        begins = cleaned.get("begins") or ends - timedelta(days=DEFAULT_DAYS - 1)
        if not timedelta(0) <= ends - begins < timedelta(days=MAX_DAYS):
            raise forms.ValidationError(f"Choose a period of 1 to {MAX_DAYS} days.")
        return cleaned | {"begins": begins, "ends": ends, "group": cleaned.get("group") or "day"}

    @property
    def period(self) -> Period:
        """The chosen days, the last one included."""
        begins: date = self.cleaned_data["begins"]
        ends: date = self.cleaned_data["ends"] + timedelta(days=1)
        return Period(*(datetime.combine(day, time.min, UTC) for day in (begins, ends)))

    @property
    def group_chosen(self) -> Group:
        """What there is a line for each of."""
        return Group(self.cleaned_data["group"])

    @property
    def subject(self) -> Subject:
        """Whose usage is meant."""
        chosen = {name: self.cleaned_data.get(name) for name in TARGETS}
        return Subject(**{f"{name}_id": one.pk for name, one in chosen.items() if one})
