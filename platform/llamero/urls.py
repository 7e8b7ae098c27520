"""Which part answers which path."""

from django.contrib import admin
from django.urls import include, path

from llamero.console.search_terms import with_checked_searches

urlpatterns = [
    # First, since most requests are for it: each pattern before costs them a look.
    path("", include("llamero.api.urls")),
    path("", include("llamero.accounts.urls")),
    path("admin/", with_checked_searches(admin.site.urls)),
    path("", include("llamero.console.urls")),
    path("", include("llamero.playground.urls")),
    path("", include("llamero.people.urls")),
    path("nodes/", include("llamero.control.urls")),
]
