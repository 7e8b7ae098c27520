"""How much of the store single users may fill, where that is not what the setting says."""

from django.conf import settings
from django.db import models


class UploadQuota(models.Model):
    """What the files of one user may take together, in place of ``UPLOAD_QUOTA_BYTES``."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="upload_quota"
    )
    max_bytes = models.PositiveBigIntegerField(
        "room for files",
        help_text="What the files of this user may take together, as 200 GiB. 0: any amount. "
        "Users who are not listed here have what the server's setting says.",
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("user__username",)

    def __str__(self) -> str:
        return f"Upload quota of {self.user}"


def read_quota(owner: str) -> int:
    """Give what an owner's files may take together; 0 for any amount."""
    kind, _, number = owner.partition(":")
    if kind == "user" and number.isdecimal():
        own = UploadQuota.objects.filter(user=int(number)).values_list("max_bytes", flat=True)
        for max_bytes in own:
            return max_bytes
    return int(settings.UPLOAD_QUOTA_BYTES)
