"""Paths of everybody's own page."""

from django.contrib.auth.views import LogoutView
from django.urls import path, reverse_lazy

from llamero.people import views

app_name = "people"
urlpatterns = [
    path("account", views.show_account, name="account"),
    path("account/sign-in", views.SignInView.as_view(), name="sign-in"),
    path(
        "account/sign-out",
        LogoutView.as_view(next_page=reverse_lazy("people:sign-in")),
        name="sign-out",
    ),
    path("account/keys", views.make_key, name="make-key"),
    path("account/keys/<int:key_id>/rotate", views.rotate_key, name="rotate-key"),
    path("account/keys/<int:key_id>/disable", views.disable_key, name="disable-key"),
    path("account/keys/<int:key_id>/revoke", views.revoke_key, name="revoke-key"),
]
