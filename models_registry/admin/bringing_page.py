"""What the pages share by which files come in: who may open them, and the tabs above."""

from typing import Any

from django.views.generic import FormView
from django.views.generic.base import ContextMixin
from unfold.views import UnfoldModelAdminViewMixin

from models_registry.admin.import_tabs import list_tabs


class BringingPage(UnfoldModelAdminViewMixin, ContextMixin):  # type: ignore[misc]
    """One way in: ``way`` is its tab."""

    way = ""
    title = "Bring in a model"
    permission_required = ("models_registry.add_model",)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the tabs."""
        return {**super().get_context_data(**kwargs), "tabs": list_tabs(self.way)}


class WishPage(BringingPage, FormView):  # type: ignore[type-arg]
    """A way in with a form of its own, which is somebody's."""

    def get_form_kwargs(self) -> dict[str, Any]:
        """Say whose form it is."""
        return {**super().get_form_kwargs(), "user": self.request.user}
