"""Whether a key is for what a request asks."""

from typing import Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from llamero.accounts.callers import Caller
from llamero.accounts.scopes import Scope


class HasScope(BasePermission):
    """Asks the view for the scope that a method needs: ``needed_scope``."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Let through whoever has it; raises PermissionDenied, which names it."""
        caller = request.auth
        if isinstance(caller, Caller):
            check_scope(caller, view.needed_scope(str(request.method)))
        return True


def check_scope(caller: Caller, scope: Scope) -> None:
    """Raise PermissionDenied for a caller without a scope."""
    if scope not in caller.scopes:
        what = "key" if caller.grant is None else "token"
        message = f"This {what} is not for this: it lacks the scope {scope.value}."
        raise PermissionDenied(message, "insufficient_scope")
