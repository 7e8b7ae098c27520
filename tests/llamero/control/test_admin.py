"""Nodes and tokens in the admin."""

import time
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from inference.protocol.nodes import CachedFile, Device, NodeStatus
from inference.protocol.replicas import EngineStats, ReplicaState
from llamero.control import admin, live_nodes
from llamero.control.live_nodes import LiveNode, LiveNodes
from llamero.control.models import Node, NodeToken, Scheduling
from llamero.control.node_tokens import find_node_token, issue_node_token, recent_tokens
from models_registry.models import ModelFile
from tests.llamero.control.fakes import GIB, make_status
from tests.models_registry.factories import make_deployment, make_model, make_version

pytestmark = pytest.mark.django_db
LIST = "admin:control_node_changelist"
CHANGE = "admin:control_node_change"
NUM_REPLICAS = 3


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node with a GPU and a replica; another one is silent."""
    Node.objects.create(name="gone")
    status = NodeStatus(
        node="n1",
        num_cores=8,
        memory_total_bytes=16 * GIB,
        memory_free_bytes=4 * GIB,
        devices=(
            Device(kind="cpu", name="host"),
            Device(kind="gpu", description="<b>H200", total_bytes=8 * GIB, free_bytes=GIB),
        ),
    )
    replica = make_status(ReplicaState.FAILED, reason="<i>no memory")
    live = LiveNodes({"n1": LiveNode(status, (replica,) * NUM_REPLICAS)})
    monkeypatch.setattr(admin, "read_live_nodes", lambda: live)
    return Node.objects.create(name="n1")


def act(browser: Client, action: str, *nodes: Node) -> str:
    data = {"action": action, "_selected_action": [node.pk for node in nodes]}
    return browser.post(reverse(LIST), data, follow=True).content.decode()


def test_the_list_shows_what_each_node_has_and_runs(browser: Client, node: Node) -> None:
    page = browser.get(reverse(LIST)).content.decode()
    assert "4.0\xa0GiB of 16.0\xa0GiB free" in page
    assert "8 cores" in page
    assert "&lt;b&gt;H200: 1.0\xa0GiB of 8.0\xa0GiB free" in page
    assert "0 ready of 3" in page
    assert "Silent" in page


def test_its_page_shows_devices_replicas_and_files(
    browser: Client, node: Node, django_assert_max_num_queries: Any
) -> None:
    model = make_model()
    make_version(model)
    deployment = make_deployment(model)
    lora = ModelFile.objects.create(sha256="c" * 64, size_bytes=GIB // 2)
    deployment.adapters.create(file=lora, name="pirate")
    files = (
        CachedFile(sha256="a" * 64, size_bytes=3 * GIB, used_at=time.time() - 120),
        CachedFile(sha256="c" * 64, size_bytes=GIB // 2, used_at=time.time()),
        CachedFile(sha256="f" * 64, size_bytes=GIB // 2, used_at=time.time()),
    )
    live = admin.read_live_nodes().nodes["n1"]
    status = msgspec.structs.replace(
        live.status, fetches_files=True, cache_limit_bytes=8 * GIB, cached_files=files
    )
    stats = EngineStats(num_sharing=6, num_shared_tokens=512)
    replica = msgspec.structs.replace(live.replicas[0], deployment=deployment.slug, stats=stats)
    live_now = LiveNodes({"n1": LiveNode(status, (replica,) * 30)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admin, "read_live_nodes", lambda: live_now)
        with django_assert_max_num_queries(19):
            page = browser.get(reverse(CHANGE, args=[node.pk])).content.decode()
    assert ">n1</a>" in page.split("</header>")[0]
    assert "&lt;b&gt;H200" in page
    assert "failed: &lt;i&gt;no memory" in page
    assert "0 of 0 busy, 6 share 512 tokens" in page
    assert reverse("admin:models_registry_deployment_change", args=[deployment.pk]) in page
    assert "4.0\xa0GiB of 8.0\xa0GiB; the longest unused make room" in page
    assert model.slug in page
    assert "2\xa0minutes ago" in page
    assert f"adapter pirate of {deployment.slug}" in page
    assert page.count("no longer registered") == 1
    assert "(&#x27;" not in page


def test_what_may_run_is_chosen_on_its_page(browser: Client, node: Node) -> None:
    url = reverse(CHANGE, args=[node.pk])
    assert browser.post(url, {"allows": "draining"}).status_code == 302
    node.refresh_from_db()
    assert node.scheduling == Scheduling.DRAINING
    assert browser.post(url, {"allows": "elsewhere"}).status_code == 200
    silent = Node.objects.get(name="gone")
    assert browser.get(reverse(CHANGE, args=[silent.pk])).status_code == 200


def test_nodes_are_cordoned_drained_and_opened(browser: Client, node: Node) -> None:
    for action, scheduling in (
        ("cordon", Scheduling.CORDONED),
        ("drain", Scheduling.DRAINING),
        ("uncordon", Scheduling.OPEN),
    ):
        assert "1 node now" in act(browser, action, node)
        node.refresh_from_db()
        assert node.scheduling == scheduling
    assert "0 nodes now open" in act(browser, "uncordon", node)


def test_who_may_only_look_changes_nothing(client: Client, node: Node) -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_node"))
    client.force_login(viewer)
    assert client.get(reverse(LIST)).status_code == 200
    page = client.get(reverse(CHANGE, args=[node.pk])).content.decode()
    assert "What may run" not in page
    assert client.post(reverse(CHANGE, args=[node.pk]), {"allows": "draining"}).status_code == 403
    act(client, "drain", node)
    node.refresh_from_db()
    assert node.scheduling == Scheduling.OPEN


def test_without_a_broker_the_page_says_that_nothing_is_known(
    browser: Client, settings: Settings
) -> None:
    settings.REDIS_URL = "unix:///nowhere.sock"
    live_nodes._recent.clear()
    Node.objects.create(name="n1")
    page = browser.get(reverse(LIST)).content.decode()
    live_nodes._recent.clear()
    assert "Unknown" in page


def test_a_token_is_shown_once(browser: Client) -> None:
    answer = browser.post(reverse("admin:control_nodetoken_add"), {"name": "workers"})
    assert "no-store" in answer["Cache-Control"]
    text = answer.context["token_text"]
    assert text in answer.content.decode()
    recent_tokens.clear()
    assert find_node_token(text) == NodeToken.objects.get()
    url = reverse("admin:control_nodetoken_change", args=[NodeToken.objects.get().pk])
    assert 'name="_save"' not in browser.get(url).text
    assert text not in browser.get(url).content.decode()


def test_tokens_are_revoked_from_the_list(browser: Client) -> None:
    issued = issue_node_token(name="workers")
    data = {"action": "revoke", "_selected_action": [issued.token.pk]}
    browser.post(reverse("admin:control_nodetoken_changelist"), data)
    recent_tokens.clear()
    assert find_node_token(issued.secret_text) is None
