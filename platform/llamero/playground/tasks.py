"""What is done about chats now and then, by the control worker."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from llamero.playground.services import delete_chats_before


@shared_task(name="playground.tidy", ignore_result=True)
def tidy_chats_task() -> None:
    """Delete the chats that have been left alone for as long as they are kept."""
    if settings.CHAT_RETENTION_DAYS:
        delete_chats_before(timezone.now() - timedelta(days=settings.CHAT_RETENTION_DAYS))
