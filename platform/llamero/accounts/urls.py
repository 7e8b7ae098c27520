"""Addresses of the sign-in through an identity provider; nothing is there where it is off."""

from django.urls import path

from llamero.accounts.sign_in import views

urlpatterns = [
    path("sign-in/", views.begin, name="sign-in"),
    path("sign-in/callback", views.come_back, name="sign-in-callback"),
    # Before the admin's own, which knows of no provider.
    path("admin/logout/", views.leave),
]
