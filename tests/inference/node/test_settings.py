"""A node agent that is told something wrong says what, in one line."""

import pytest

from inference.node.__main__ import set_up

REDIS, PLACE, TOKEN = "LLAMERO_REDIS_URL", "LLAMERO_CONTROL_URL", "LLAMERO_NODE_TOKEN"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({REDIS: ""}, r"LLAMERO_REDIS_URL is not set; it must be .*redis://host:6379/0"),
        ({REDIS: "localhost:6379"}, "LLAMERO_REDIS_URL is 'localhost:6379', but must be"),
        ({PLACE: "http://c", TOKEN: ""}, "LLAMERO_NODE_TOKEN is not set"),
        ({PLACE: "c:8000", TOKEN: "t"}, "LLAMERO_CONTROL_URL must be an address"),
        ({"LLAMERO_DRAIN_SECONDS": "long"}, "LLAMERO_DRAIN_SECONDS is 'long', but must be"),
        ({"LLAMERO_HEALTH_PORT": "-1"}, "LLAMERO_HEALTH_PORT must be a port"),
    ],
)
def test_a_bad_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], words: str
) -> None:
    for name, value in {REDIS: "redis://127.0.0.1:1/0", **changes}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=words):
        set_up()
