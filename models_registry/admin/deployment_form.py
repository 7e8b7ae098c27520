"""The form of a deployment: refuses what no node could ever hold."""

from typing import Any

from django import forms

from models_registry.models import Deployment
from models_registry.models.profile import read_shares
from models_registry.rooms import list_rooms
from models_registry.selectors import estimate_deployment


class DeploymentForm(forms.ModelForm):  # type: ignore[type-arg]
    """Checks memory last, when every setting is known to be good in itself."""

    class Media:
        css = {"all": ("models_registry/pages.css",)}  # noqa: RUF012 - Django's own declaration
        js = ("models_registry/live_panel.js", "models_registry/live_part.js")

    def clean_tensor_split(self) -> str:
        """Keep what cannot be read off the deployment, whose panels are drawn all the same."""
        text: str = self.cleaned_data["tensor_split"]
        try:
            read_shares(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return text

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        deployment: Deployment = self.instance
        if self.errors or deployment.ignores_memory or not deployment.enabled:
            return
        rooms = list_rooms(besides=deployment.slug)
        estimates: list[Any] = [estimate_deployment(deployment, room.gpus) for room in rooms]
        if not rooms or any(
            room.could_hold(one) for room, one in zip(rooms, estimates, strict=True)
        ):
            return
        shortages = "; ".join(
            room.describe_shortage(one) for room, one in zip(rooms, estimates, strict=True)
        )
        self.add_error(
            "context_length" if "context_length" in self.fields else None,
            f"No node could hold this, whatever else runs: {shortages}. Give it a shorter "
            "context, fewer slots, a smaller step token budget or cache type, or tick “run without "
            "room”.",
        )
