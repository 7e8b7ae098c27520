"""The admin's sidebar: our own pages, then whatever the admin manages, by permission."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

ICONS = {
    "Model": "neurology",
    "Deployment": "rocket_launch",
    "ModelVersion": "history",
    "ModelFile": "draft",
    "UploadQuota": "hard_drive",
    "Node": "dns",
    "NodeToken": "vpn_key",
    "ApiKey": "key",
    "Team": "groups",
    "TokenIssuer": "verified_user",
    "Identity": "badge",
    "LimitSet": "speed",
    "UsageHour": "bar_chart",
    "UsageAlert": "notifications",
    "AlertNotice": "mark_email_read",
    "LedgerRow": "receipt_long",
    "Batch": "stacks",
    "StoredFile": "description",
    "StoredResponse": "chat",
    "User": "person",
    "Group": "group",
    "Change": "fact_check",
}
"""In the order in which they are shown: what one comes for first."""
_RANKS = {name: rank for rank, name in enumerate(ICONS)}


def build_navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Give the groups of the sidebar (called by the admin theme)."""
    home = reverse("admin:index")
    own = {
        "items": [
            {
                "title": "Overview",
                "icon": "dashboard",
                "link": home,
                "active": request.path == home,
            },
            # The rest leads out of the admin: on none of its pages one is there.
            *(
                {"title": title, "icon": icon, "link": reverse(name), "active": False}
                for title, icon, name in (
                    ("Playground", "forum", "playground:chat"),
                    ("My keys", "passkey", "people:account"),
                    ("API", "menu_book", "console:reference"),
                )
            ),
        ]
    }
    apps = admin.site.get_app_list(request)
    groups = sorted(apps, key=lambda app: min(map(_rank, app["models"])))
    return [own, *(_make_group(app, request.path) for app in groups)]


def _rank(model: dict[str, Any]) -> int:
    return _RANKS.get(model["object_name"], len(_RANKS))


def _make_group(app: dict[str, Any], path: str) -> dict[str, Any]:
    items = [
        {
            "title": model["name"],
            "icon": ICONS.get(model["object_name"], "table_rows"),
            "link": model["admin_url"],
            # Said here, since the theme takes any address for active that has the link in it:
            # /account is in /admin/accounts/apikey/.
            "active": path.startswith(model["admin_url"]),
        }
        for model in sorted(app["models"], key=_rank)
        if model["admin_url"]
    ]
    return {"title": app["name"], "separator": True, "items": items}
