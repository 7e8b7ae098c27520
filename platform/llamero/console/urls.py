"""Paths of the console."""

from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from llamero.console.dashboard import show_overview
from llamero.console.deployment_live import show_deployment
from llamero.console.landing import show_landing
from llamero.console.reference import show_reference

app_name = "console"
urlpatterns = [
    path("", show_landing, name="landing"),
    path("docs", show_reference, name="reference"),
    path("overview", show_overview, name="overview"),
    path("deployments/<int:pk>/live", show_deployment, name="deployment-live"),
    path("favicon.ico", RedirectView.as_view(url=static("llamero/logo.svg"))),
]
