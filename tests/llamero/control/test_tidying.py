"""What is kept for a while is cleaned up once a period, however many loops run."""

from functools import partial

import pytest

from inference.relay.connect import connect
from llamero.control import tidying


def test_a_clean_up_is_asked_for_once_a_period(
    valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    names = ["registry", "responses", "chats", "files", "texts"]
    for name in names:
        task = getattr(tidying, f"tidy_{name}_task")
        monkeypatch.setattr(task, "delay", partial(asked.append, name))
    redis = connect(valkey_url)
    redis.delete(tidying.TIDIED)
    tidying.tidy(redis)
    tidying.tidy(redis)
    assert asked == names
    assert 0 < redis.ttl(tidying.TIDIED) <= tidying.PERIOD_SECONDS
