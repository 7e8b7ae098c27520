"""Whose is a browser's session, where no page is asked for but a socket or an upload?"""

from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from llamero.accounts.callers import Caller, user_owner


def find_session_caller(session_key: str) -> Caller | None:
    """Find the active member of the staff that a session belongs to."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    if not (user.is_authenticated and user.is_active and user.is_staff):
        return None
    return Caller(user=user, key_id=None, owner=user_owner(user.pk))
