"""A user's presets: list, save, delete."""

from typing import Any

from django.http import HttpRequest

from llamero.playground.documents import describe_preset
from llamero.playground.json_views import json_view, not_found, user_of
from llamero.playground.requests import read_preset
from llamero.playground.selectors import list_presets
from llamero.playground.services import delete_preset, save_preset


def _list(request: HttpRequest) -> dict[str, Any]:
    found = list_presets(user_of(request))
    return {"presets": [describe_preset(preset) for preset in found]}


def _save(request: HttpRequest) -> dict[str, Any]:
    name, settings = read_preset(request)
    saved = save_preset(user=user_of(request), name=name, settings=settings)
    return describe_preset(saved)


def _delete(request: HttpRequest, preset_id: int) -> None:
    if not delete_preset(user=user_of(request), preset_id=preset_id):
        raise not_found("preset")


presets = json_view(get=_list, post=_save)
preset = json_view(delete=_delete)
