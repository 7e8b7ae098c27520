"""Which part answers which path."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("llamero.accounts.urls")),
    path("admin/", admin.site.urls),
    path("", include("llamero.console.urls")),
    path("", include("llamero.playground.urls")),
    path("", include("llamero.people.urls")),
    path("nodes/", include("llamero.control.urls")),
    path("", include("llamero.api.urls")),
]
