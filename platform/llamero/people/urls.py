"""Paths of everybody's own page."""

from django.urls import path

from llamero.accounts.sign_in.views import leave_account
from llamero.people import views

app_name = "people"
urlpatterns = [
    path("account", views.show_account, name="account"),
    path("account/sign-in", views.SignInView.as_view(), name="sign-in"),
    path("account/sign-out", leave_account, name="sign-out"),
    path("account/keys", views.make_key, name="make-key"),
    path("account/keys/<int:key_id>/rotate", views.rotate_key, name="rotate-key"),
    path("account/keys/<int:key_id>/disable", views.disable_key, name="disable-key"),
    path("account/keys/<int:key_id>/revoke", views.revoke_key, name="revoke-key"),
]
