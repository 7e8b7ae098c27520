"""Registry, stored responses and files are cleaned up once a period, however many loops run."""

import pytest

from inference.relay.connect import connect
from llamero.control import tidying


def test_a_clean_up_is_asked_for_once_a_period(
    valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(tidying.tidy_registry_task, "delay", lambda: asked.append("registry"))
    monkeypatch.setattr(tidying.tidy_responses_task, "delay", lambda: asked.append("responses"))
    monkeypatch.setattr(tidying.tidy_files_task, "delay", lambda: asked.append("files"))
    redis = connect(valkey_url)
    redis.delete(tidying.TIDIED)
    tidying.tidy(redis)
    tidying.tidy(redis)
    assert asked == ["registry", "responses", "files"]
    assert 0 < redis.ttl(tidying.TIDIED) <= tidying.PERIOD_SECONDS
