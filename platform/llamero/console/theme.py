"""How the admin looks (django-unfold)."""

from typing import Any

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Llamero",
    "SITE_HEADER": "Llamero",
    "SITE_SUBHEADER": "Models, served",
    "SITE_ICON": "/static/llamero/logo.svg",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "/static/llamero/logo.svg"},
    ],
    "STYLES": ["/static/llamero/admin.css"],
    "SCRIPTS": ["/static/llamero/assistive.js", "/static/llamero/autofocus.js"],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "llamero.console.dashboard.add_overview",
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": False,
        "navigation": "llamero.console.sidebar.build_navigation",
    },
}
