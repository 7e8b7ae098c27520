"""Teams: users who share keys, and one day limits."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Lower

_NAME = RegexValidator(
    r"\A[\w][\w .&'()/-]*\Z", "Use letters, digits, spaces and . _ - & ' ( ) / only."
)


class TeamRole(models.TextChoices):
    """What a member may do: admins look after the team's keys."""

    MEMBER = "member", "Member"
    ADMIN = "admin", "Admin"


class Team(models.Model):
    """Users who work together. Names differ by more than capitals."""

    name = models.CharField(max_length=100, validators=[_NAME])
    is_active = models.BooleanField(
        "active", default=True, help_text="Turn off to refuse all keys of the team."
    )
    members: "models.ManyToManyField[models.Model, Membership]" = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="accounts.Membership", related_name="teams"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                Lower("name"),
                name="team_name_is_unique",
                violation_error_message="There is a team of this name.",
            ),
        )

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One user in one team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(
        max_length=8,
        choices=TeamRole.choices,
        default=TeamRole.MEMBER,
        help_text="Admins who may enter this site look after the team's keys.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("team", "user")
        constraints = (
            models.UniqueConstraint(fields=("team", "user"), name="member_of_a_team_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=TeamRole.values), name="team_role_is_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"
