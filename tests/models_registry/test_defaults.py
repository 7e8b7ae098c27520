"""A new deployment is offered the most that some node has room for."""

import os

import pytest

from inference.protocol.nodes import Device
from models_registry.models import Model
from models_registry.rooms import Room
from models_registry.services.defaults import default_profile
from tests.models_registry.factories import make_facts, make_model, make_version

pytestmark = pytest.mark.django_db
GIB = 1 << 30
# A context of 8192 tokens takes 1 GiB.
FACTS = make_facts(context_length=32_768, width=1 << 15, num_layers=1)


def make_served_model() -> Model:
    """Give a model with a version of these facts."""
    model = make_model()
    make_version(model, facts=FACTS)
    return model


def profile_of(model: Model) -> dict[str, int]:
    """Give what is offered."""
    return default_profile(model, model.versions.get())


def gpu(size: int) -> Device:
    """Give an empty GPU."""
    return Device(kind="gpu", name="CUDA0", total_bytes=size, free_bytes=size)


def test_without_nodes_contexts_take_a_part_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sysconf", lambda _: 1 << 17)  # 16 GiB, as pages and bytes
    assert profile_of(make_served_model()) == {"context_length": 8192, "num_slots": 4}


def test_the_largest_node_decides(rooms: list[Room]) -> None:
    rooms += [Room("a", 3 * GIB, 4 * GIB), Room("b", 10 * GIB, 16 * GIB)]
    assert profile_of(make_served_model())["num_slots"] == 8


def test_a_small_gpu_takes_what_it_can_hold(rooms: list[Room]) -> None:
    rooms.append(Room("a", 16 * GIB, 32 * GIB, (gpu(2 * GIB),)))
    offered = profile_of(make_served_model())
    assert offered == {"context_length": 8192, "num_slots": 4, "num_gpu_layers": 1}
    rooms[:] = [Room("a", 2 * GIB, 4 * GIB, (gpu(2 * GIB),))]
    assert profile_of(make_served_model_again()) == {"context_length": 8192, "num_slots": 1}


def make_served_model_again() -> Model:
    """Give another such model."""
    model = make_model("again")
    make_version(model, facts=FACTS, sha256="b" * 64)
    return model


def test_a_node_too_small_for_anything_gets_the_least(rooms: list[Room]) -> None:
    rooms.append(Room("a", GIB // 4, GIB // 2))
    assert profile_of(make_served_model())["num_slots"] == 1


def test_nothing_known_of_the_model_means_the_defaults(rooms: list[Room]) -> None:
    rooms.append(Room("a", 1, 2))
    model = make_model()
    assert default_profile(model, None) == {"context_length": 8192, "num_slots": 16}


@pytest.mark.parametrize(
    ("quantization", "num_params", "gpus", "weight_type"),
    [
        ("Q4_1", 10**9, (), "q8_0"),
        ("Q5_1", 10**9, (), "q8_0"),
        ("Q4_K_M", 10**9, (), None),
        ("Q4_1", 10**10, (), None),
        ("Q4_1", 10**9, (gpu(8 * GIB),), None),
    ],
)
def test_types_that_a_cpu_is_slow_with_are_converted(
    rooms: list[Room],
    quantization: str,
    num_params: int,
    gpus: tuple[Device, ...],
    weight_type: str | None,
) -> None:
    rooms.append(Room("a", 64 * GIB, 64 * GIB, gpus))
    model = make_model()
    facts = FACTS | {"quantization": quantization, "num_params": num_params}
    make_version(model, facts=facts)
    assert profile_of(model).get("weight_type") == weight_type


def test_weights_are_not_converted_where_they_would_not_fit(rooms: list[Room]) -> None:
    facts = FACTS | {"quantization": "Q4_1", "num_params": 10**9}
    memory = {**FACTS["memory"], "layers": [[600 << 20, 0, 1 << 15, 1 << 15, 0, 600 << 20, 10**9]]}
    rooms.append(Room("a", 5 * GIB, 5 * GIB))
    model = make_model()
    make_version(model, facts=facts | {"memory": memory})
    assert profile_of(model)["num_slots"] == 4
    assert "weight_type" not in profile_of(model)
