"""Values on pages of the admin that cannot be changed there."""

from typing import Any

from django import template
from django.db.models import Model
from unfold.utils import display_for_label

register = template.Library()


@register.simple_tag(takes_context=True)
def readonly_contents(context: Any, field: Any) -> Any:
    """Give what a field shows; what somebody may not see is named, but nothing leads there.

    The admin makes a link of every foreign key, whoever reads it; and the theme draws as labels
    only in lists what a page of one thing shows as well.
    """
    contents = field.contents()
    _, attribute, value = field.resolved_field or (None, None, None)
    colours = getattr(attribute, "label", None)
    if colours:
        return display_for_label(value, field.empty_value_display, colours)
    if isinstance(value, Model) and not _may_see(context["request"].user, value):
        return str(value)
    return contents


def _may_see(user: Any, thing: Model) -> bool:
    app, name = thing._meta.app_label, thing._meta.model_name
    return any(user.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change"))
