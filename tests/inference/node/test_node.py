"""A node agent process: replicas come, go, crash and never outlive it."""

import psutil

from inference.protocol.events import Tokens
from inference.protocol.replicas import ReplicaState
from tests.inference.node.conftest import Node
from tests.inference.worker.replicas import Client, make_job, make_spec
from tests.processes import PATIENCE_SECONDS, wait_until


async def test_a_desired_replica_serves(node: Node, client: Client) -> None:
    node.want(make_spec())
    client.wait_for_status()
    job = make_job()
    await client.submit(job)
    client.wait_for_end(job)
    (status,) = node.desired.nodes()
    assert status.node == "here"
    assert status.replicas == ("chat-1",)
    assert status.devices[0].kind == "cpu"
    assert status.memory_total_bytes > 0


def test_an_unwanted_replica_is_stopped(node: Node, client: Client) -> None:
    node.want(make_spec(), make_spec("chat-2"))
    client.wait_for_status("chat-1")
    client.wait_for_status("chat-2")
    node.want(make_spec())
    wait_until(lambda: len(node.replicas()) == 1, what="one replica left")
    wait_until(
        lambda: [status.replica for status in client.registry.list()] == ["chat-1"],
        what="one replica registered",
    )


def test_a_new_generation_replaces_the_process(node: Node, client: Client) -> None:
    node.want(make_spec())
    first = client.wait_for_status()
    node.want(make_spec(generation=2))
    second = client.wait_for_status(matches=lambda status: status.generation == 2)
    assert second.pid != first.pid
    assert not psutil.pid_exists(first.pid)


def test_a_replica_that_cannot_load_shows_the_reason(node: Node, client: Client) -> None:
    node.want(make_spec(files=("/nowhere/model.gguf",)))
    status = client.wait_for_status(
        state=ReplicaState.STARTING, matches=lambda status: "Restarts in" in status.reason
    )
    assert "model.gguf cannot be read" in status.reason
    node.want(make_spec(generation=2))
    client.wait_for_status(matches=lambda status: status.generation == 2)


def test_sigterm_stops_every_replica(node: Node, client: Client) -> None:
    node.want(make_spec(), make_spec("chat-2"))
    pids = [client.wait_for_status(name).pid for name in ("chat-1", "chat-2")]
    node.process.terminate()
    assert node.process.wait(PATIENCE_SECONDS) == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert client.registry.list() == ()
    assert node.desired.nodes() == ()


async def test_sigterm_leaves_an_endless_job_to_others(node: Node, client: Client) -> None:
    node.want(make_spec())
    client.wait_for_status()
    job = make_job(max_tokens=4000)
    await client.submit(job)
    client.wait_for_start(job)
    node.process.terminate()
    assert node.process.wait(PATIENCE_SECONDS) == 0
    assert isinstance(client.events(job)[-1], Tokens)
    [view] = await client.gateway.poll([(job.id, 1)])
    assert view.state == "waiting"


def test_a_killed_agent_leaves_no_orphan(node: Node, client: Client) -> None:
    node.want(make_spec())
    status = client.wait_for_status()
    node.process.kill()
    wait_until(lambda: not psutil.pid_exists(status.pid), what="replica is gone")


def test_a_replica_gets_no_secret(node: Node, client: Client) -> None:
    node.want(make_spec())
    status = client.wait_for_status()
    assert "LLAMERO_SECRET_KEY" not in psutil.Process(status.pid).environ()


def test_replicas_outlive_a_server_that_lost_its_data(node: Node, client: Client) -> None:
    node.want(make_spec())
    before = client.wait_for_status()
    client.redis.flushall()
    wait_until(node.desired.nodes, what="the agent has looked again")
    assert client.wait_for_status().pid == before.pid
    assert [child.pid for child in node.replicas()] == [before.pid]
