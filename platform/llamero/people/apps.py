"""The app of roles and of everybody's own page."""

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class PeopleConfig(AppConfig):
    """Roles, and everybody's own keys."""

    name = "llamero.people"
    label = "people"
    verbose_name = "People"

    def ready(self) -> None:
        """Bring the roles up to date at each migration.

        Only apps with tables are told; the last of them is, when all permissions are there.
        """
        last = [one for one in apps.get_app_configs() if one.models_module is not None][-1]
        post_migrate.connect(_after_migration, sender=last)


def _after_migration(plan: Any = None, **_: Any) -> None:
    # Emptying the tables, as tests do, tells of itself in the same way, without a plan.
    if plan is not None:
        from llamero.people.roles import make_roles

        make_roles()
