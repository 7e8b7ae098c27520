"""What is done about kept texts now and then, by the control worker."""

from celery import shared_task
from django.utils import timezone

from llamero.usage.models import JobText


@shared_task(name="usage.tidy", ignore_result=True)
def tidy_texts_task() -> None:
    """Delete prompts and answers whose time is over."""
    JobText.objects.filter(expires_at__lte=timezone.now()).delete()
