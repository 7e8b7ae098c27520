"""Have what is kept for a while cleaned up now and then, by whichever control loop comes first."""

from inference.relay.connect import SyncRedis
from llamero.batches.tasks import tidy_files_task
from llamero.conversations.tasks import tidy_responses_task
from llamero.playground.tasks import tidy_chats_task
from llamero.usage.tasks import tidy_texts_task
from models_registry.tasks import tidy_registry_task

TIDIED = "lm:tidied"
PERIOD_SECONDS = 600


def tidy(redis: SyncRedis) -> None:
    """Ask for a clean-up unless one was asked for within the period."""
    if redis.set(TIDIED, 1, nx=True, ex=PERIOD_SECONDS):
        tidy_registry_task.delay()
        tidy_responses_task.delay()
        tidy_chats_task.delay()
        tidy_files_task.delay()
        tidy_texts_task.delay()
