"""Give disk space back after deletions in the admin."""

from functools import partial

from django.db import transaction

from models_registry.services.store import remove_unused_files


def remove_files_after_commit() -> None:
    """Remove blobs that lost their last version, once the deletion is certain."""
    transaction.on_commit(partial(remove_unused_files), robust=True)
