"""The ways by which files come in, each with a page of its own."""

from django.urls import reverse

_TABS = (
    ("upload", "Upload"),
    ("hub", "Hugging Face"),
    ("fetch", "From a URL"),
    ("import", "From this server"),
)


def list_tabs(current: str) -> list[tuple[str, str, bool]]:
    """Give title and address of each page, and whether it is the current one."""
    return [
        (title, reverse(f"admin:models_registry_model_{name}"), name == current)
        for name, title in _TABS
    ]
