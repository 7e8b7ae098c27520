"""Which files are on their way into the registry, and what they are to become together."""

from pathlib import Path

from django.conf import settings
from django.db import models

from models_registry.incoming_ids import make_incoming_id
from models_registry.models.file import ModelFile
from models_registry.models.version import ModelVersion
from models_registry.names import shown_url


class ImportState(models.TextChoices):
    """open -> waiting -> importing -> done; waiting or importing -> failed -> waiting.

    It waits once somebody has said what it is to become, until all of its files are there.
    """

    OPEN = "open", "Open"
    WAITING = "waiting", "Waiting for its files"
    IMPORTING = "importing", "Importing"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class ModelImport(models.Model):
    """Files that come together, by whatever way, and become a version or adapters of one model.

    ``wish`` is what they are to become: the fields of ``services.imports.Wish``. ``owner`` is who
    began it, as the data plane names callers.
    """

    id = models.CharField(primary_key=True, max_length=64, default=make_incoming_id, editable=False)
    owner = models.CharField(max_length=64, db_index=True)
    state = models.CharField(
        max_length=16, choices=ImportState.choices, default=ImportState.OPEN, db_index=True
    )
    wish = models.JSONField(default=dict, blank=True)
    reason = models.TextField(blank=True)
    version = models.ForeignKey(
        ModelVersion, on_delete=models.SET_NULL, null=True, blank=True, related_name="imports"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    touched_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        ordering = ("-created_at",)
        verbose_name = "import"
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=ImportState.values), name="import_state_is_known"
            ),
        )

    def __str__(self) -> str:
        return str(self.wish.get("model") or self.id[:8])


class UploadState(models.TextChoices):
    """receiving -> checking -> complete; receiving or checking -> refused."""

    RECEIVING = "receiving", "Receiving"
    CHECKING = "checking", "Checking"
    COMPLETE = "complete", "Complete"
    REFUSED = "refused", "Refused"


class Upload(models.Model):
    """One file on its way: sent by a client, or fetched from ``source_url``.

    That keeps a query, which may be a signature, only for as long as it is fetched.
    How much of it is here, its file alone tells. ``sha256`` is what it should have, as far as that
    was said, ``found_sha256`` what it has. ``facts`` is what its header says, once that is here.
    ``stored_file`` is the blob that it turned out to be.
    """

    id = models.CharField(primary_key=True, max_length=64, default=make_incoming_id, editable=False)
    model_import = models.ForeignKey(ModelImport, on_delete=models.CASCADE, related_name="uploads")
    display_name = models.CharField(max_length=255, blank=True)
    size_bytes = models.BigIntegerField("size in bytes", null=True)
    sha256 = models.CharField("SHA-256", max_length=64, blank=True)
    found_sha256 = models.CharField(max_length=64, blank=True)
    state = models.CharField(
        max_length=16, choices=UploadState.choices, default=UploadState.RECEIVING, db_index=True
    )
    code = models.CharField(max_length=64, blank=True)
    reason = models.TextField(blank=True)
    facts = models.JSONField(default=dict, blank=True)
    stored_file = models.ForeignKey(
        ModelFile, on_delete=models.SET_NULL, null=True, blank=True, related_name="expected_by"
    )
    source_url = models.CharField(max_length=2048, blank=True)
    # What the source calls its present contents: a fetch that goes on must find the same.
    source_tag = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    touched_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        ordering = ("created_at", "pk")
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=UploadState.values), name="upload_state_is_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state=UploadState.REFUSED) | ~models.Q(reason=""),
                name="refused_upload_has_a_reason",
            ),
        )

    def __str__(self) -> str:
        return self.display_name or self.id[:8]

    @property
    def shown_source(self) -> str:
        """Where it is fetched from, for people and programs that ask."""
        return shown_url(self.source_url)

    @property
    def path(self) -> Path:
        """Where its bytes lie until it is stored: named by our own id, never by a user's text."""
        return incoming_folder() / self.id

    @property
    def num_received(self) -> int:
        """How many of its bytes are here."""
        if self.state == UploadState.COMPLETE or self.stored_file_id is not None:
            return self.size_bytes or 0
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0


def incoming_folder() -> Path:
    """Give the folder of files on their way, on the file system of the store."""
    folder = Path(settings.HOME) / "models" / ".incoming"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
