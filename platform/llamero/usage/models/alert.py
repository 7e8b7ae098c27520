"""Who is told when how much of a budget is used, and what they were told."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import models
from django.db.models import Q
from django.utils import timezone

from llamero.accounts.targets import name_target, of_one_or_all
from llamero.egress import UnsafeAddress, check_address
from llamero.usage.signing import make_webhook_secret

MAX_SHARES = 10
MAX_RECIPIENTS = 20
NO_MAIL_SERVER = "No mail server is set up: see LLAMERO_EMAIL_URL."


def check_shares(shares: Any) -> None:
    """Refuse what is no list of shares, in per cent."""
    is_list = isinstance(shares, list) and all(type(share) is int for share in shares)
    if not is_list or not shares or len(set(shares)) != len(shares):
        raise ValidationError("Shares must be a list of whole numbers of per cent, each once.")
    if len(shares) > MAX_SHARES or not all(1 <= share <= 1000 for share in shares):
        raise ValidationError(f"At most {MAX_SHARES} shares, each of 1 to 1000 per cent.")


def check_recipients(addresses: Any) -> None:
    """Refuse what is no list of e-mail addresses."""
    if not isinstance(addresses, list) or not all(isinstance(one, str) for one in addresses):
        raise ValidationError("Recipients must be a list of e-mail addresses.")
    if len(addresses) > MAX_RECIPIENTS:
        raise ValidationError(f"At most {MAX_RECIPIENTS} recipients.")
    for address in addresses:
        validate_email(address)


def check_webhook(url: str) -> None:
    """Refuse an address that is never called."""
    try:
        check_address(url)
    except UnsafeAddress as error:
        raise ValidationError(str(error)) from None


def _default_shares() -> list[int]:
    return [80, 100]


def _target(to: str) -> "models.ForeignKey[Any, Any]":
    return models.ForeignKey(
        to, on_delete=models.CASCADE, null=True, blank=True, related_name="usage_alerts"
    )


class UsageAlert(models.Model):
    """Tells recipients and a webhook that a share of a budget is used: once in each of its windows.

    It watches the budgets of one key, user, team or model, or, where it names none, of all.
    """

    name = models.CharField(max_length=100)
    enabled = models.BooleanField(default=True)
    key = _target("accounts.ApiKey")
    user = _target(settings.AUTH_USER_MODEL)
    team = _target("accounts.Team")
    model = _target("models_registry.Model")
    shares = models.JSONField(
        default=_default_shares, validators=[check_shares], help_text="In per cent of a budget."
    )
    recipients = models.JSONField(
        default=list, blank=True, validators=[check_recipients], help_text="E-mail addresses."
    )
    webhook_url = models.CharField(
        "webhook",
        max_length=500,
        blank=True,
        validators=[check_webhook],
        help_text="An https:// address that is told by POST, signed: see the documentation.",
    )
    webhook_secret = models.CharField(max_length=100, default=make_webhook_secret, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        verbose_name = "alert"
        constraints = (
            models.CheckConstraint(
                condition=of_one_or_all(),
                name="alert_is_of_one",
                violation_error_message="An alert is of one key, user, team or model, or of all.",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse an alert that tells nobody."""
        if not self.recipients and not self.webhook_url:
            raise ValidationError("Name recipients or a webhook.")

    @property
    def hindrance(self) -> str:
        """Why its recipients get nothing; empty where they do."""
        return NO_MAIL_SERVER if self.recipients and not settings.EMAIL_IS_SET_UP else ""

    @property
    def subject(self) -> str:
        """Whose budgets it watches, as limits name them; empty for all."""
        return name_target(self)


class NoticeState(models.TextChoices):
    """Whether somebody was told: waiting -> sent, or, after many tries, given up."""

    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    GIVEN_UP = "given_up", "Given up"


class AlertNotice(models.Model):
    """One message of an alert by one way, for one share of one budget in one window."""

    alert = models.ForeignKey(UsageAlert, on_delete=models.CASCADE, related_name="notices")
    channel = models.CharField(max_length=8, editable=False)
    budget = models.CharField(max_length=160, editable=False)
    begins_at = models.DateTimeField(editable=False)
    share = models.PositiveIntegerField(editable=False)
    message = models.JSONField(editable=False)
    state = models.CharField(
        max_length=8, choices=NoticeState.choices, default=NoticeState.WAITING, editable=False
    )
    num_tries = models.PositiveIntegerField("tries", default=0, editable=False)
    next_try_at = models.DateTimeField(default=timezone.now, editable=False)
    last_error = models.CharField(max_length=200, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        verbose_name = "alert that was sent"
        verbose_name_plural = "alerts that were sent"
        constraints = (
            models.UniqueConstraint(
                fields=("alert", "channel", "budget", "begins_at", "share"),
                name="one_notice_a_window",
            ),
        )
        indexes = (
            models.Index(
                fields=("next_try_at",), condition=Q(state="waiting"), name="notices_that_wait"
            ),
        )

    def __str__(self) -> str:
        return f"{self.share} % of {self.budget_label}"

    @property
    def budget_label(self) -> str:
        """Name the budget as people do: ``key ci (llm_abcdefgh_…), tokens a day``."""
        told = self.message
        return f"{told['owner']}, {told['measure']} a {told['period']}"
