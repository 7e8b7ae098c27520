"""A file that a replica finds changed takes its versions out of service."""

import pytest

from inference.protocol.replicas import ReplicaState
from inference.relay.connect import connect
from inference.relay.registry import ReplicaRegistry
from llamero.control.quarantining import quarantine
from models_registry.models import VersionState
from models_registry.selectors import list_deployment_targets
from tests.llamero.control.fakes import make_status
from tests.models_registry.factories import make_deployment, make_model, make_version


@pytest.mark.django_db
def test_versions_with_a_changed_file_are_quarantined(valkey_url: str) -> None:
    bad = make_version(make_model("bad"), sha256="b" * 64)
    good = make_version(make_model("good"), sha256="a" * 64)
    make_deployment(bad.model)
    with connect(valkey_url) as redis:
        registry = ReplicaRegistry(redis)
        status = make_status(
            ReplicaState.FAILED, reason="Its SHA-256 differs.", bad_sha256="b" * 64
        )
        registry.beat(status)
        quarantine(redis)
        quarantine(redis)
        registry.remove(status.replica)
    bad.refresh_from_db()
    good.refresh_from_db()
    assert (bad.state, bad.reason) == (VersionState.QUARANTINED, "Its SHA-256 differs.")
    assert good.state == VersionState.READY
    assert list_deployment_targets()[0].files == ()
