"""Nodes for the registry's tests: what ``rooms`` holds, in place of heartbeats."""

from models_registry.rooms import Room

rooms: list[Room] = []


def list_fake_rooms(*, besides: str = "") -> tuple[Room, ...]:
    """Stand in for the control plane."""
    return tuple(rooms)
