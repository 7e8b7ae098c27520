"""What the admin says before it deletes several deployments at once."""

from django import template

register = template.Library()


@register.simple_tag
def foretell_deletions() -> list[str]:
    """Say what clients get after several deployments were deleted."""
    # Not before: Unfold reads all tags while it is imported, and the admin's modules import it.
    from models_registry.admin.deployment_steps import foretell_deletions as foretell

    return foretell()
