"""Parts of the deployment form that follow the values typed into it, before anything is saved."""

from collections.abc import Callable

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from models_registry.admin.memory_panel import show_memory
from models_registry.admin.shares import show_split
from models_registry.models import Deployment

PANELS: dict[str, Callable[[Deployment], SafeString]] = {"memory": show_memory, "split": show_split}


def show_live(deployment: Deployment, name: str, url: str) -> SafeString:
    """Wrap a panel for the script that asks ``url`` for it again when a value changes."""
    context = {
        "panel": PANELS[name](deployment),
        "url": f"{url}?panel={name}",
        "deployment": deployment,
    }
    return render_to_string("models_registry/live_panel.html", context)
