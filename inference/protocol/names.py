"""Names that both ends of a Celery queue must spell alike."""

from urllib.parse import parse_qs, urlsplit

TICKET_TASK = "inference.take_jobs"
TICKET_QUEUE = "gen."


def ticket_queue(replica: str) -> str:
    """Name the Celery queue whose tickets wake the slots of a replica."""
    return TICKET_QUEUE + replica


def broker_url(redis_url: str) -> str:
    """Spell a Redis address as Celery does; only Unix sockets differ."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={database}"
