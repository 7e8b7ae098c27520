"""Which things the audit log is about, and what of them it must not hold."""

from dataclasses import dataclass, field

_TIMES = frozenset({"created_at", "updated_at", "changed_at", "last_used_at", "touched_at"})
# Whatever a field is of, a name with one of these in it is not written out.
_SECRET_WORDS = ("password", "digest", "secret", "pepper")


@dataclass(frozen=True, slots=True)
class Watch:
    """How a kind of thing is watched.

    ``silent`` fields are the program's own, such as what state something is in: no change of them
    is noted. Of ``secret`` ones only that they changed.
    """

    silent: frozenset[str] = field(default_factory=frozenset)
    secret: frozenset[str] = field(default_factory=frozenset)

    def is_silent(self, name: str) -> bool:
        """Whether a field is left out."""
        return name in self.silent or name in _TIMES

    def is_secret(self, name: str) -> bool:
        """Whether a field's value is left out."""
        return name in self.secret or any(word in name for word in _SECRET_WORDS)


_PLAIN = Watch()
WATCHED: dict[str, Watch] = {
    "auth.User": Watch(silent=frozenset({"last_login", "date_joined"})),
    "auth.Group": _PLAIN,
    "accounts.ApiKey": _PLAIN,
    "accounts.Team": _PLAIN,
    "accounts.Membership": _PLAIN,
    "accounts.Identity": _PLAIN,
    "accounts.TokenIssuer": Watch(secret=frozenset({"keys"})),
    "control.Node": Watch(silent=frozenset({"first_seen_at"})),
    "control.NodeToken": _PLAIN,
    "limits.LimitSet": _PLAIN,
    "usage.ModelPrice": _PLAIN,
    # Addresses of webhooks often are secrets, too.
    "usage.UsageAlert": Watch(secret=frozenset({"webhook_url"})),
    "models_registry.Model": _PLAIN,
    "models_registry.ModelAlias": _PLAIN,
    "models_registry.ModelVersion": Watch(
        silent=frozenset({"state", "reason", "facts", "probed_build", "made_current_at"})
    ),
    "models_registry.ModelFile": _PLAIN,
    "models_registry.Deployment": Watch(
        silent=frozenset(
            {
                "state",
                "reason",
                "state_changed_at",
                "last_error",
                "last_error_log",
                "last_error_at",
                "draft_version",
            }
        )
    ),
    "models_registry.DeploymentAdapter": _PLAIN,
    "models_registry.UploadQuota": _PLAIN,
}
# What staff meets in the admin and nobody changes there by hand, or which is people's own data,
# not the operators'.
UNWATCHED = frozenset(
    {
        "audit.Change",
        "batches.Batch",
        "batches.StoredFile",
        "conversations.StoredResponse",
        "models_registry.ModelImport",
        "models_registry.Upload",
        "usage.AlertNotice",
        "usage.LedgerRow",
        "usage.UsageHour",
    }
)
