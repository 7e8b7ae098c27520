"""What is done about stored responses now and then, by the control worker."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from llamero.conversations.services import remove_unused_responses


@shared_task(name="conversations.tidy", ignore_result=True)
def tidy_responses_task() -> None:
    """Delete responses that nobody used for as long as they are kept."""
    kept = timedelta(days=settings.RESPONSE_RETENTION_DAYS)
    remove_unused_responses(before=timezone.now() - kept)
