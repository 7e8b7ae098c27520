"""Addresses for worker machines."""

from django.urls import path

from llamero.control.file_pieces import FilePieceView

urlpatterns = [path("files/<str:sha256>", FilePieceView.as_view(), name="node_file")]
