"""A replica: one Celery worker process with one loaded model and one engine."""
