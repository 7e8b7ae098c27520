"""What an admin says of one node."""

from typing import Any

from django.forms import ChoiceField, ModelForm
from unfold.widgets import UnfoldAdminSelectWidget

from llamero.control.models import Node, Scheduling


class NodeForm(ModelForm):  # type: ignore[type-arg]
    """Its one field is what may run there; the rest is what the node says of itself."""

    allows = ChoiceField(
        label="What may run",
        choices=Scheduling.choices,
        widget=UnfoldAdminSelectWidget,
        help_text="Cordoned: what runs stays, and nothing new comes. "
        "Draining: what runs goes elsewhere, each replica once another one serves.",
    )

    class Meta:
        model = Node
        fields = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["allows"].initial = self.instance.scheduling
