"""Embeddings and reranking for the page: the API's own views, for a session instead of a key."""

from typing import Any

from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed

from llamero.accounts.callers import Caller
from llamero.api.openai.embeddings import EmbeddingsView
from llamero.api.paths import Dialect
from llamero.api.rerank import RerankView
from llamero.playground.json_views import session_caller


class StaffSession(SessionAuthentication):
    """A signed-in member of the staff, on a page of ours: the token against forgery is asked."""

    def authenticate(self, request: Any) -> tuple[Caller, Caller] | None:
        """Give the caller, or refuse."""
        found = super().authenticate(request)
        if found is None or not found[0].is_staff:
            raise AuthenticationFailed("Sign in as a member of the staff.", "not_signed_in")
        caller = session_caller(request._request)
        return caller, caller

    def authenticate_header(self, request: Any) -> str:
        """Answer 401, not 403."""
        return "Session"


embeddings = EmbeddingsView.as_view(authentication_classes=[StaffSession])
rerank = RerankView.as_view(authentication_classes=[StaffSession], dialect=Dialect.OPENAI)
