"""Paths of the console."""

from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from llamero.console.dashboard import show_overview
from llamero.console.deployment_live import show_deployment
from llamero.console.history import show_history
from llamero.console.landing import show_landing
from llamero.console.model_usage import show_model_usage
from llamero.console.reference import show_reference
from llamero.console.template_example import show_template

app_name = "console"
urlpatterns = [
    path("", show_landing, name="landing"),
    path("docs", show_reference, name="reference"),
    path("overview", show_overview, name="overview"),
    path("console/history", show_history, name="history"),
    path("console/models/<int:pk>/usage", show_model_usage, name="model-usage"),
    path("console/versions/<int:pk>/template", show_template, name="version-template"),
    path("console/deployments/<int:pk>/live", show_deployment, name="deployment-live"),
    path("favicon.ico", RedirectView.as_view(url=static("llamero/logo.svg"))),
]
