"""What a node has, runs and keeps, as tables of its page in the admin."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from inference.protocol.nodes import CachedFile, Device
from inference.protocol.replicas import ReplicaStatus
from llamero.control.live_nodes import LiveNode
from models_registry.models import Deployment, DeploymentAdapter, VersionFile

_KINDS = {"cpu": "Host", "gpu": "GPU", "igpu": "GPU of the host's memory"}


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A place to put models, and how full it is."""

    name: str
    kind: str
    total_bytes: int
    free_bytes: int

    @property
    def used_percent(self) -> int:
        """How much of it is taken."""
        return round(100 * (1 - self.free_bytes / self.total_bytes)) if self.total_bytes else 0


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A replica, what it is doing, and where its deployment is described."""

    status: ReplicaStatus
    deployment_url: str

    @property
    def num_busy(self) -> int:
        """How many of its slots have a job."""
        return sum(bool(slot.job) for slot in self.status.slots)

    @property
    def loaded_percent(self) -> int:
        """How much of a model that is being loaded or fetched is there."""
        return round(100 * self.status.progress)


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file that was fetched, and the models and adapters that it is part of."""

    file: CachedFile
    uses: str

    @property
    def used_at(self) -> datetime:
        """When it was used last."""
        return datetime.fromtimestamp(self.file.used_at, UTC)


def device_table(live: LiveNode) -> SafeString:
    """Show the host and its GPUs, each with its memory."""
    status = live.status
    rows = [_device_row(device) for device in status.devices]
    if not any(device.kind == "cpu" for device in status.devices):
        free_bytes = status.memory_free_bytes
        rows.insert(0, DeviceRow("", _KINDS["cpu"], status.memory_total_bytes, free_bytes))
    return render_to_string(
        "control/node_devices.html", {"rows": rows, "num_cores": status.num_cores}
    )


def replica_table(live: LiveNode) -> SafeString:
    """Show the replicas, each with its state, its work and its memory."""
    slugs = {one.deployment for one in live.replicas}
    keys = dict(Deployment.objects.filter(slug__in=slugs).values_list("slug", "pk"))
    rows = [ReplicaRow(one, _deployment_url(keys.get(one.deployment))) for one in live.replicas]
    return render_to_string("control/node_replicas.html", {"rows": rows})


def file_table(live: LiveNode) -> SafeString:
    """Show the fetched files, the last used first."""
    files = live.status.cached_files
    names = _name_uses([one.sha256 for one in files])
    rows = [FileRow(one, ", ".join(sorted(names.get(one.sha256, ())))) for one in files]
    used_bytes = sum(one.size_bytes for one in files)
    return render_to_string(
        "control/node_files.html",
        {"rows": rows, "status": live.status, "used_bytes": used_bytes},
    )


def _name_uses(hashes: list[str]) -> dict[str, set[str]]:
    """Give what each file is part of: models (drafts are models, too), and adapters."""
    names: dict[str, set[str]] = {}
    versions = VersionFile.objects.filter(file__sha256__in=hashes)
    for sha256, model in versions.values_list("file__sha256", "version__model__slug"):
        names.setdefault(sha256, set()).add(model)
    adapters = DeploymentAdapter.objects.filter(file__sha256__in=hashes)
    for sha256, name, slug in adapters.values_list("file__sha256", "name", "deployment__slug"):
        names.setdefault(sha256, set()).add(f"adapter {name} of {slug}")
    return names


def _device_row(device: Device) -> DeviceRow:
    name = device.description or device.name
    kind = _KINDS.get(device.kind, device.kind)
    return DeviceRow(name, kind, device.total_bytes, device.free_bytes)


def _deployment_url(key: int | None) -> str:
    return "" if key is None else reverse("admin:models_registry_deployment_change", args=[key])
