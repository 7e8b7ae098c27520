"""What happens to chats on a socket, from start to end."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import ModelFacts, ReplicaState, ReplicaStatus
from llamero.accounts.services import IssuedKey, issue_api_key
from llamero.api import loading
from llamero.streaming import frames
from models_registry.models import Deployment, Model, ModelVersion
from tests.llamero.streaming.conftest import Connect, receive, receive_until, start_frame, until
from tests.llamero.streaming.fakes import FakeDispatcher
from tests.llamero.streaming.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_chat_streams_its_text_and_ends_with_counts(
    socket: SocketClient, dispatcher: FakeDispatcher, issued: IssuedKey
) -> None:
    await socket.send_json_to(start_frame(temperature=0.5, max_tokens=9, seed=7, stop=["x"]))

    received = await receive_until(socket, "done", "error")

    assert [frame["type"] for frame in received] == ["queued", "started", *["delta"] * 3, "done"]
    assert [frame["seq"] for frame in received[2:5]] == [1, 2, 3]
    assert "".join(frame["text"] for frame in received[2:5]) == "Hello, world"
    assert all(frame["id"] == "a" for frame in received)
    done = received[-1]
    assert done["finish_reason"] == "stop"
    assert done["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "total_tokens": 10,
        "cached_tokens": 3,
        "reasoning_tokens": 0,
    }
    assert done["timings"]["predicted_per_second"] == 150
    job = dispatcher.streams[0].job
    assert (job.sampling.temperature, job.sampling.seed, job.max_tokens) == (0.5, 7, 9)
    assert (job.stop, job.owner, job.salt) == (("x",), f"key:{issued.key.pk}", job.owner)
    await until(lambda: dispatcher.streams[0].is_closed)


async def test_a_chat_has_its_deployments_defaults(
    served: Deployment, socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    defaults = {"default_seed": 42, "default_temperature": 0.5, "default_n_predict": 9}
    await Deployment.objects.filter(pk=served.pk).aupdate(**defaults)
    await socket.send_json_to(start_frame(temperature=0.25))
    await receive_until(socket, "done", "error")
    job = dispatcher.streams[0].job
    assert (job.sampling.temperature, job.sampling.seed, job.max_tokens) == (0.25, 42, 9)


async def test_calls_and_reasoning_have_frames_of_their_own(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.chat_template = "{{ tools }}<tool_call><think></think>"
    call = '<tool_call>\n{"name": "now", "arguments": {"zone"'
    dispatcher.pieces = ("<think>", "Hm.", "</think>", "So: ", call, ': "x"}}', "\n</tool_call>")
    tool = {"type": "function", "function": {"name": "now"}}
    await socket.send_json_to(start_frame(tools=[tool], resumable=True))
    told = await receive_until(socket, "done")

    content = [frame for frame in told if "seq" in frame]
    assert [frame["type"] for frame in content] == [
        "reasoning",
        "delta",
        "call",
        "arguments",
        "arguments",
    ]
    assert [frame["seq"] for frame in content] == [1, 2, 3, 4, 5]
    assert content[0]["text"] == "Hm."
    assert (content[2]["index"], content[2]["name"]) == (0, "now")
    assert content[3]["text"] + content[4]["text"] == '{"zone": "x"}'
    assert told[-1]["finish_reason"] == "tool_calls"
    assert told[-1]["usage"]["reasoning_tokens"] == 3

    resume = {"type": "resume", "id": "b", "run": told[0]["run"], "after": 3}
    await socket.send_json_to(resume)
    rest = await receive_until(socket, "done")
    assert [frame["text"] for frame in rest if "seq" in frame] == ['{"zone"', ': "x"}']


async def test_a_system_prompt_goes_before_the_messages(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    await socket.send_json_to(start_frame(system="Be brief."))
    await receive_until(socket, "done")

    roles = [message["role"] for message in dispatcher.questions[0].messages]
    assert roles == ["system", "user"]


async def test_a_chat_without_an_id_is_given_one(socket: SocketClient) -> None:
    await socket.send_json_to(start_frame(id=None))

    received = await receive_until(socket, "done")

    assert len({frame["id"] for frame in received}) == 1


async def test_cancelling_stops_the_job_and_tells_what_was_done(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.pieces, dispatcher.step_seconds = ("word ",) * 1000, 0.01
    await socket.send_json_to(start_frame())
    await receive_until(socket, "delta")

    await socket.send_json_to({"type": "cancel", "id": "a"})
    received = await receive_until(socket, "done")

    assert received[-1]["finish_reason"] == "cancelled"
    assert received[-1]["usage"]["completion_tokens"] >= 1
    assert dispatcher.streams[0].is_cancelled
    await until(lambda: dispatcher.streams[0].is_closed)


async def test_a_chat_can_be_cancelled_while_it_is_being_rendered(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.is_render_stuck = True
    await socket.send_json_to(start_frame())
    await until(lambda: dispatcher.questions)

    await socket.send_json_to({"type": "cancel", "id": "a"})

    assert (await receive(socket))["finish_reason"] == "cancelled"


async def test_closing_the_socket_ends_all_its_chats(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.pieces, dispatcher.step_seconds = ("word ",) * 1000, 0.01
    for job_id in ("a", "b", "c"):
        await socket.send_json_to(start_frame(id=job_id))
    await until(lambda: len(dispatcher.streams) == 3)

    await socket.disconnect()

    assert all(stream.is_closed for stream in dispatcher.streams)


async def test_several_chats_share_a_socket(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.step_seconds = 0.01
    await socket.send_json_to(start_frame(id="a"))
    await socket.send_json_to(start_frame(id="b"))

    received = await receive_until(socket, "done") + await receive_until(socket, "done")

    for job_id in ("a", "b"):
        deltas = [f for f in received if f["id"] == job_id and f["type"] == "delta"]
        assert "".join(frame["text"] for frame in deltas) == "Hello, world"
        assert [frame["seq"] for frame in deltas] == [1, 2, 3]


async def test_chats_on_one_socket_are_bounded(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.is_render_stuck = True
    for index in range(frames.MAX_JOBS + 1):
        await socket.send_json_to(start_frame(id=f"job-{index}"))

    refused = await receive(socket)

    assert refused["id"] == f"job-{frames.MAX_JOBS}"
    assert refused["error"]["code"] == "too_many_jobs"


async def test_an_id_that_is_in_use_is_refused(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.is_render_stuck = True
    await socket.send_json_to(start_frame())
    await socket.send_json_to(start_frame())

    refused = await receive(socket)

    assert (refused["error"]["code"], "id" in refused) == ("id_in_use", False)


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"model": "no-such"}, "model", "model_not_found"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": [{"role": "x"}]}, "messages[0].role", "invalid_value"),
        ({"messages": [{"role": "x"}], "system": "Hi"}, "messages[0].role", "invalid_value"),
        ({"temperature": "hot"}, "temperature", None),
        ({"system": 5}, "system", "invalid_value"),
        ({"n": 2}, "n", "invalid_value"),
    ],
)
async def test_a_request_that_rest_refuses_is_refused_alike(
    socket: SocketClient, fields: dict[str, object], param: str, code: str | None
) -> None:
    await socket.send_json_to(start_frame(**fields))

    refused = await receive(socket)

    assert (refused["type"], refused["id"]) == ("error", "a")
    assert refused["error"]["param"] == param
    assert code is None or refused["error"]["code"] == code
    assert refused["error"]["message"]


async def test_a_key_for_another_model_finds_none(
    connect: Connect, staff: User, dispatcher: FakeDispatcher
) -> None:
    other = await Model.objects.acreate(slug="mini", title="Mini", kind="embedding")
    await ModelVersion.objects.acreate(model=other, number=1, state="ready", is_current=True)
    await Deployment.objects.acreate(slug="mini", model=other, state="ready")
    issue = sync_to_async(issue_api_key)
    key = await issue(user=staff, name="one model", allowed_models=[other])
    limited = await connect((b"authorization", f"Bearer {key.secret_text}".encode()))
    await limited.connect()
    assert (await receive(limited))["type"] == "hello"
    for model, code in (("smol", "model_not_found"), ("mini", "invalid_value")):
        await limited.send_json_to(start_frame(model=model))
        refused = (await receive(limited))["error"]
        assert (refused["param"], refused["code"]) == ("model", code)
    assert not dispatcher.questions


async def test_what_a_template_refuses_is_told_in_its_words(
    socket: SocketClient, dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise EngineError(ErrorCode.CHAT_TEMPLATE_ERROR, "Roles must alternate.")

    monkeypatch.setattr(dispatcher, "ask", refuse)
    await socket.send_json_to(start_frame())

    refused = (await receive(socket))["error"]
    assert (refused["code"], refused["message"]) == ("chat_template_error", "Roles must alternate.")


async def test_a_prompt_longer_than_the_context_is_refused(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.context_length = 7
    await socket.send_json_to(start_frame())

    assert (await receive(socket))["error"]["code"] == "context_length_exceeded"


async def test_no_ready_replica_is_an_error_that_invites_another_try(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.refusal = EngineError(ErrorCode.NO_READY_REPLICA, "The model is loading.")
    await socket.send_json_to(start_frame())

    refused = await receive(socket)

    assert (refused["error"]["code"], refused["retryable"]) == ("no_ready_replica", True)


async def test_a_chat_shows_how_far_its_model_is_that_is_being_loaded(
    socket: SocketClient, dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_loaded = asyncio.Event()

    async def give_facts(deployment: str, *, waits: bool = True) -> ModelFacts:
        if not waits and not is_loaded.is_set():
            raise EngineError(ErrorCode.NO_READY_REPLICA, "It sleeps.")
        await is_loaded.wait()
        return ModelFacts(num_vocab=100, context_length=100)

    async def give_replicas(deployment: str) -> tuple[ReplicaStatus, ...]:
        state = ReplicaState.LOADING
        status = ReplicaStatus(replica="a", deployment="a", node="n", state=state, progress=0.5)
        return (status,)

    monkeypatch.setattr(dispatcher, "facts", give_facts)
    monkeypatch.setattr(dispatcher, "replicas", give_replicas, raising=False)
    monkeypatch.setattr(loading, "QUEUE_SECONDS", 0.01)
    await socket.send_json_to(start_frame())

    assert await receive(socket) == {"type": "loading", "id": "a", "model": "smol", "progress": 0.5}
    is_loaded.set()
    assert (await receive_until(socket, "done", "error"))[-1]["type"] == "done"


async def test_the_socket_serves_on_after_a_refusal(socket: SocketClient) -> None:
    await socket.send_json_to(start_frame(model="no-such"))
    assert (await receive(socket))["type"] == "error"

    await socket.send_json_to(start_frame())

    assert (await receive_until(socket, "done", "error"))[-1]["type"] == "done"


async def test_a_job_that_never_tells_its_end_is_given_up_after_a_cancel(
    socket: SocketClient, dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamero.streaming.chat_job.CANCEL_GRACE_SECONDS", 0.05)
    dispatcher.pieces, dispatcher.step_seconds = ("word",) * 10, 60.0
    await socket.send_json_to(start_frame())
    await receive_until(socket, "started")

    async def say_nothing() -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(dispatcher.streams[0], "cancel", say_nothing)
    await socket.send_json_to({"type": "cancel", "id": "a"})

    assert (await receive(socket))["finish_reason"] == "cancelled"
    await until(lambda: dispatcher.streams[0].is_closed)
