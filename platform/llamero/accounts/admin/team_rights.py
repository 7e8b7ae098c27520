"""Team admins of the staff look after their teams' keys without further permissions."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from llamero.accounts.models import ApiKey, Team, TeamRole


def administered_teams(user: Any) -> QuerySet[Team]:
    """Give the teams that a user is an admin of."""
    return Team.objects.filter(memberships__user=user, memberships__role=TeamRole.ADMIN)


class TeamRightsMixin(ModelAdmin):  # type: ignore[misc]
    """Whoever has the permission may do it with every key, a team's admin with those of the team.

    What is not theirs is not in their lists, and found at no address.
    """

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        """Give the keys that somebody may see."""
        keys: QuerySet[ApiKey] = super().get_queryset(request)
        if not self.is_confined(request):
            return keys
        return keys.filter(team__in=administered_teams(request.user))

    def is_confined(self, request: HttpRequest) -> bool:
        """Whether somebody sees the keys of their teams alone."""
        return not super().has_view_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether keys are in the menu."""
        return super().has_module_permission(request) or self._is_team_admin(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether keys, or one of them, may be seen."""
        return super().has_view_permission(request, obj) or self._is_team_admin(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whether keys may be made."""
        return super().has_add_permission(request) or self._is_team_admin(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether keys, or one of them, may be changed."""
        allowed: bool = super().has_change_permission(request, obj)
        # Who may look at all keys needs the permission to change those of a team, too.
        return allowed or (self.is_confined(request) and self._is_team_admin(request, obj))

    def _is_team_admin(self, request: HttpRequest, key: ApiKey | str | None = None) -> bool:
        """Tell of any key, or of one; the theme gives what the address names, whatever it is."""
        if not request.user.is_authenticated:  # the sign-in page asks too
            return False
        teams = administered_teams(request.user)
        if key is None:
            return teams.exists()
        pk = str(key.pk if isinstance(key, ApiKey) else key)
        return pk.isdecimal() and teams.filter(api_keys=int(pk)).exists()
