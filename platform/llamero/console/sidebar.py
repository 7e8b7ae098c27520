"""The admin's sidebar: our own pages, then whatever the admin manages, by permission."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

ICONS = {
    "Model": "neurology",
    "ModelVersion": "history",
    "ModelFile": "draft",
    "Deployment": "rocket_launch",
    "ApiKey": "key",
    "Team": "groups",
    "TokenIssuer": "verified_user",
    "Identity": "badge",
    "Change": "fact_check",
    "User": "person",
    "Group": "group",
    "Node": "dns",
    "NodeToken": "vpn_key",
    "StoredResponse": "chat",
    "StoredFile": "description",
    "Batch": "stacks",
    "LimitSet": "speed",
    "UploadQuota": "hard_drive",
    "UsageHour": "bar_chart",
    "LedgerRow": "receipt_long",
    "UsageAlert": "notifications",
    "AlertNotice": "mark_email_read",
}


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
    return [own, *(_make_group(app, request.path) for app in apps)]


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
        for model in app["models"]
        if model["admin_url"]
    ]
    return {"title": app["name"], "separator": True, "items": items}
