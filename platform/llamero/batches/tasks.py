"""What is done about files and batches now and then, by the control worker."""

from celery import shared_task
from django.utils import timezone

from llamero.batches.services import remove_expired


@shared_task(name="batches.tidy", ignore_result=True)
def tidy_files_task() -> None:
    """Delete what has expired."""
    remove_expired(now=timezone.now())
