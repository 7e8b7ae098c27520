"""Prompts and answers, kept for a while where a deployment says so."""

from django.db import models

from llamero.usage.models.ledger import LedgerRow


class JobText(models.Model):
    """What one job was asked and what it answered, packed: see ``texts``."""

    row = models.OneToOneField(LedgerRow, on_delete=models.CASCADE, related_name="text")
    prompt = models.BinaryField()
    answer = models.BinaryField()
    expires_at = models.DateTimeField(db_index=True, editable=False)

    class Meta:
        ordering = ("-pk",)
        verbose_name = "kept text"

    def __str__(self) -> str:
        return f"text of {self.row_id}"
