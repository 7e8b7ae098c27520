"""The Celery application of the web and control side."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llamero.settings")

app = Celery("llamero")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    ["llamero.batches", "llamero.control", "llamero.conversations", "models_registry"]
)
