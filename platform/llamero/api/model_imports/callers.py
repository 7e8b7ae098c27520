"""Who brings models: whoever has a key for it, or a member of the staff in a browser."""

from typing import Any

from django.conf import settings
from rest_framework.authentication import CSRFCheck
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from llamero.accounts.authentication import ApiKeyAuthentication, read_key
from llamero.accounts.callers import Caller, user_owner
from llamero.accounts.scopes import Scope
from llamero.accounts.sessions import find_session_caller
from models_registry.incoming.receiving import SEES_FILES

PERMISSION = "models_registry.add_model"


class KeyOrSession(ApiKeyAuthentication):
    """A key, as everywhere; without one, the session of a browser, guarded against other sites."""

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Give the caller, or refuse."""
        session_key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if read_key(request) or not session_key:
            return super().authenticate(request)
        caller = find_session_caller(session_key)
        if caller is None:
            return super().authenticate(request)
        _refuse_other_sites(request)
        uploader = _as_uploader(caller)
        return uploader, uploader


def owner_of(caller: Caller) -> str:
    """Name whose files they are: a user's by whatever way, or those of a key that is no user's."""
    return user_owner(caller.user.pk) if caller.user is not None else caller.owner


def is_operator(caller: Caller) -> bool:
    """Whether a caller sees what others bring, too: staff in a browser do."""
    return caller.key_id is None


def sees_files(caller: Caller) -> bool:
    """Whether a caller may see the files of others, and so have one for its hash alone.

    A key that is limited to some models sees none but its own (a query).
    """
    user: Any = caller.user
    is_staff = user is not None and user.is_active and user.is_staff
    return bool(is_staff and not caller.allowed_models and user.has_perm(SEES_FILES))


def _as_uploader(caller: Caller) -> Caller:
    user: Any = caller.user
    is_allowed = user.has_perm(PERMISSION)
    scopes = frozenset({Scope.UPLOAD}) if is_allowed else frozenset()
    return Caller(user=user, key_id=None, owner=caller.owner, scopes=scopes)


def _refuse_other_sites(request: Request) -> None:
    """Ask for the token that only our own pages have, for whatever changes something."""
    check = CSRFCheck(lambda _request: None)  # type: ignore[arg-type]
    check.process_request(request._request)
    if check.process_view(request._request, None, (), {}):  # type: ignore[arg-type]
        raise PermissionDenied("The page is too old, or not of this site: reload it.", "csrf")
