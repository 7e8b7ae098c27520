"""The app of files and batches."""

from django.apps import AppConfig


class BatchesConfig(AppConfig):
    """Files that clients uploaded, and batches of requests made from them."""

    name = "llamero.batches"
    label = "batches"
    verbose_name = "Batches"
    default_auto_field = "django.db.models.BigAutoField"
