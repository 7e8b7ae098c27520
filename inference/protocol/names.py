"""Names that both ends of a Celery queue must spell alike."""

TICKET_TASK = "inference.take_jobs"


def ticket_queue(deployment: str) -> str:
    """Name the Celery queue whose tickets wake the slots of a deployment."""
    return f"gen.{deployment}"
