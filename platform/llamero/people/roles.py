"""The roles: groups with exactly these permissions, made and kept so by every migration.

A role opens the admin only to those who are of the staff, too. Whoever needs another mix makes a
group of another name; a superuser needs no role.
"""

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

VIEWERS = "Viewers"
OPERATORS = "Operators"

_SEE = ("view",)
_RUN = ("view", "change")
_KEEP = ("view", "add", "change", "delete")
# What each role may do with each kind of thing. What is not here is for superusers alone: users
# and groups, and whom to trust (tokens of nodes, issuers of tokens).
_VIEWERS: dict[str, tuple[str, ...]] = dict.fromkeys(
    (
        "accounts.apikey",
        "accounts.membership",
        "accounts.team",
        "batches.batch",
        "batches.storedfile",
        "control.node",
        "conversations.storedresponse",
        "limits.limitset",
        "models_registry.deployment",
        "models_registry.deploymentadapter",
        "models_registry.model",
        "models_registry.modelalias",
        "models_registry.modelfile",
        "models_registry.modelimport",
        "models_registry.modelversion",
        "models_registry.upload",
        "models_registry.uploadquota",
        "models_registry.versionfile",
        "usage.alertnotice",
        "usage.ledgerrow",
        "usage.modelprice",
        "usage.usagealert",
        "usage.usagehour",
    ),
    _SEE,
)
_OPERATORS = _VIEWERS | {
    "accounts.apikey": _KEEP,
    "accounts.membership": _KEEP,
    "accounts.team": _KEEP,
    "audit.change": _SEE,
    "auth.user": _SEE,
    "batches.batch": _RUN,
    "control.node": _RUN,
    "limits.limitset": _KEEP,
    "models_registry.deployment": _KEEP,
    "models_registry.deploymentadapter": _KEEP,
    "models_registry.model": _KEEP,
    "models_registry.modelalias": _KEEP,
    "models_registry.modelfile": _KEEP,
    "models_registry.modelimport": _KEEP,
    "models_registry.modelversion": _KEEP,
    "models_registry.upload": _KEEP,
    "models_registry.uploadquota": _KEEP,
    "models_registry.versionfile": _KEEP,
}
ROLES = {VIEWERS: _VIEWERS, OPERATORS: _OPERATORS}


def codes_of(role: str) -> set[str]:
    """Give the permissions of a role, spelled as ``User.has_perm`` takes them."""
    codes = set()
    for label, verbs in ROLES[role].items():
        app, _, model = label.partition(".")
        codes |= {f"{app}.{verb}_{model}" for verb in verbs}
    return codes


def make_roles() -> None:
    """Make the groups where they are not, and give each its permissions and no others."""
    for role in ROLES:
        wanted = Q(pk__in=())
        for code in codes_of(role):
            app, _, codename = code.partition(".")
            wanted |= Q(content_type__app_label=app, codename=codename)
        group, _ = Group.objects.get_or_create(name=role)
        permissions = set(Permission.objects.filter(wanted))
        if permissions != set(group.permissions.all()):
            group.permissions.set(permissions)
