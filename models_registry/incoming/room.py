"""Is there room for one more file: within the limit, the owner's quota, and on the disk?"""

import os

from django.conf import settings
from django.db.models import Sum

from models_registry.incoming.refusal import Refusal, UploadRefused
from models_registry.models import ModelFile, Upload, UploadState
from models_registry.models.incoming import incoming_folder
from models_registry.models.quota import read_quota
from models_registry.sizes import filesizeformat

# Whoever imports by a command owns the machine, and has no quota.
OPERATOR = "operator"
_ON_ITS_WAY = (UploadState.RECEIVING, UploadState.CHECKING, UploadState.COMPLETE)


def check_room(*, size_bytes: int, owner: str) -> None:
    """Raise UploadRefused, with figures, where a file of this size has no room."""
    if size_bytes > settings.MAX_MODEL_FILE_BYTES:
        raise UploadRefused(
            Refusal.TOO_LARGE,
            f"The file has {_size(size_bytes)}; one may have at most "
            f"{_size(settings.MAX_MODEL_FILE_BYTES)}.",
        )
    check_quota(size_bytes=size_bytes, owner=owner)
    free = free_bytes() - outstanding_bytes()
    if size_bytes > free:
        raise UploadRefused(
            Refusal.NO_SPACE,
            f"The file has {_size(size_bytes)}, but the server has room for only "
            f"{_size(max(0, free))} more.",
        )


def check_quota(*, size_bytes: int, owner: str) -> None:
    """Raise UploadRefused where an owner's files would take more than they may."""
    if owner == OPERATOR or not (quota := read_quota(owner)):
        return
    taken = bytes_of(owner)
    if taken + size_bytes > quota:
        raise UploadRefused(
            Refusal.QUOTA,
            f"Your files take {_size(taken)} of {_size(quota)}: this one, with "
            f"{_size(size_bytes)}, would be too much. Delete versions or uploads first.",
        )


def free_bytes() -> int:
    """Give what the store's disk has left, less the reserve."""
    usage = os.statvfs(incoming_folder())
    return usage.f_bavail * usage.f_frsize - int(settings.DISK_RESERVE_BYTES)


def outstanding_bytes() -> int:
    """Give what uploads that have begun will still take."""
    coming = Upload.objects.filter(state=UploadState.RECEIVING, stored_file=None)
    return sum(max(0, (one.size_bytes or 0) - one.num_received) for one in coming)


def bytes_of(owner: str) -> int:
    """Give what an owner's files take: those on their way, and those of versions."""
    coming = Upload.objects.filter(
        model_import__owner=owner, state__in=_ON_ITS_WAY, stored_file=None
    )
    stored = ModelFile.objects.filter(owner=owner)
    sums = (rows.aggregate(total=Sum("size_bytes"))["total"] for rows in (coming, stored))
    return sum(total or 0 for total in sums)


def _size(num_bytes: int) -> str:
    return filesizeformat(num_bytes).replace("\xa0", " ")
