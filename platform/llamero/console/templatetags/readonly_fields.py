"""Values on pages of the admin that cannot be changed there."""

from typing import Any

from django import template
from django.db.models import Model
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from unfold.utils import display_for_label

register = template.Library()
_NEW_LINE = mark_safe("<br>")
# Zero and "no" are values.
_NOTHING: tuple[Any, ...] = (None, "", [], {})


@register.simple_tag(takes_context=True)
def readonly_contents(context: Any, field: Any) -> Any:
    """Give what a field shows; what somebody may not see is named, but nothing leads there.

    The admin makes a link of every foreign key, whoever reads it; and the theme draws as labels
    only in lists what a page of one thing shows as well. Lists are lines here, and an admin's
    ``words_when_empty`` say by a field's name what it means that nothing is in it.
    """
    contents = field.contents()
    _, attribute, value = field.resolved_field or (None, None, None)
    colours = getattr(attribute, "label", None)
    if colours:
        return display_for_label(value, field.empty_value_display, colours)
    if isinstance(value, Model) and not _may_see(context["request"].user, value):
        return str(value)
    if contents == "" or value in _NOTHING:
        return getattr(field.model_admin, "words_when_empty", {}).get(field.field["name"], "")
    if isinstance(value, list):
        return format_html_join(_NEW_LINE, "{}", ((one,) for one in value))
    return contents


def _may_see(user: Any, thing: Model) -> bool:
    app, name = thing._meta.app_label, thing._meta.model_name
    return any(user.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change"))
