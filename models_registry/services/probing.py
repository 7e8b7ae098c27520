"""Probe versions again that passed another build of the engine: each has faults of its own."""

import logging

from django.db.models import QuerySet

from inference.gguf.build import engine_build
from inference.gguf.examine import probe_files
from inference.gguf.verdict import GgufRejected
from models_registry.models import ModelVersion, VersionState
from models_registry.services.importing import weights_of
from models_registry.services.versions import quarantine_version

logger = logging.getLogger(__name__)


def find_unprobed() -> QuerySet[ModelVersion]:
    """Find ready versions that this build has not probed, those that are served first."""
    ready = ModelVersion.objects.filter(state=VersionState.READY)
    return ready.exclude(probed_build=engine_build()).order_by("-is_current", "-pk")


def probe_again(version: ModelVersion) -> bool:
    """Probe a version with this build; one that fails is taken out of service.

    Gives whether it was probed. Files that are not there are left to what checks files.
    """
    build = engine_build()
    paths = weights_of(version)
    if not build or not paths or not all(path.exists() for path in paths):
        return False
    try:
        probe_files(paths)
    except GgufRejected as error:
        logger.warning("%s does not pass with %s: %s", version, build, error.reason)
        reason = f"This build of llama.cpp ({build}) refuses it: {error.reason}"
        quarantine_version(version=version, reason=reason)
    ModelVersion.objects.filter(pk=version.pk).update(probed_build=build)
    return True
