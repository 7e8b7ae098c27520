"""Paths of the HTTP API."""

from django.urls.resolvers import URLPattern

urlpatterns: list[URLPattern] = []
