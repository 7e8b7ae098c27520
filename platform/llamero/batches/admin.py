"""Files and batches in the admin: how far they are; never what they say."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from llamero.batches.models import Batch, BatchState, StoredFile
from llamero.batches.services import cancel_batch
from models_registry.admin.labels import draw_label
from models_registry.sizes import filesizeformat

_COLOURS: dict[str, str] = {
    BatchState.VALIDATING: "info",
    BatchState.FAILED: "danger",
    BatchState.IN_PROGRESS: "info",
    BatchState.FINALIZING: "info",
    BatchState.COMPLETED: "success",
    BatchState.EXPIRED: "warning",
    BatchState.CANCELLING: "warning",
    BatchState.CANCELLED: "",
}


class ClientMadeAdmin(ModelAdmin):  # type: ignore[misc]
    """Rows that clients make and staff look at."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Let none be made by hand."""
        return False


@admin.register(StoredFile)
class StoredFileAdmin(ClientMadeAdmin):
    """Staff may delete files, and read none."""

    list_display = ("id", "filename", "purpose", "size", "api_key", "created_at", "expires_at")
    list_filter = ("purpose",)
    search_fields = ("id", "filename", "api_key__name", "api_key__prefix")
    list_select_related = ("api_key",)
    fields = (
        "id",
        "filename",
        "purpose",
        "size",
        "sha256",
        "api_key",
        "created_at",
        "expires_at",
    )
    readonly_fields = fields

    @display(description="Size", ordering="num_bytes")  # type: ignore[untyped-decorator]
    def size(self, file: StoredFile) -> str:
        """Show how much it holds."""
        return filesizeformat(file.num_bytes)


@admin.register(Batch)
class BatchAdmin(ClientMadeAdmin):
    """Staff see how far batches are, and cancel them."""

    list_display = (
        "id",
        "state_label",
        "progress",
        "model",
        "endpoint",
        "api_key",
        "created_at",
        "expires_at",
    )
    # Models are searched for: there may be thousands.
    list_filter = ("state", "endpoint")
    search_fields = ("id", "model", "api_key__name", "api_key__prefix")
    list_select_related = ("api_key",)
    fields = (
        "id",
        "state_label",
        "progress",
        "num_failed",
        "model",
        "endpoint",
        "api_key",
        "input_file",
        "output_file",
        "error_file",
        "first_error",
        *(f"{name}_at" for name in ("created", "expires", *BatchState.values[1:])),
    )
    readonly_fields = fields
    actions = ("cancel",)

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Batch]":
        """Leave what only its runner needs in the database."""
        rows: QuerySet[Batch] = super().get_queryset(request)
        return rows.defer("done", "parts")

    @display(description="State")  # type: ignore[untyped-decorator]
    def state_label(self, batch: Batch) -> SafeString:
        """Show how far it is."""
        return draw_label(_COLOURS.get(batch.state, ""), batch.get_state_display())

    @display(description="Progress")  # type: ignore[untyped-decorator]
    def progress(self, batch: Batch) -> str:
        """Show how many requests have an answer, good or bad."""
        if not batch.num_total:
            return "-"
        num_done = batch.num_completed + batch.num_failed
        return f"{num_done} of {batch.num_total} ({100 * num_done // batch.num_total} %)"

    @display(description="Errors")  # type: ignore[untyped-decorator]
    def first_error(self, batch: Batch) -> str:
        """Show what kept it from beginning."""
        return "\n".join(str(error["message"]) for error in batch.errors[:5]) or "-"

    @action(description="Cancel; what is answered is kept", permissions=["change"])  # type: ignore[untyped-decorator]
    def cancel(self, request: HttpRequest, batches: "QuerySet[Batch]") -> None:
        """Stop the chosen batches."""
        cancelled = [one for one in batches if cancel_batch(batch_id=one.id)]
        for batch in cancelled:
            self.log_change(request, batch, "Cancelled")
        plural = pluralize(len(cancelled), "batch,batches")
        self.message_user(request, f"{len(cancelled)} {plural} cancelled.", messages.SUCCESS)
