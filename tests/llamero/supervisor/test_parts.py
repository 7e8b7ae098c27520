"""Parts get the time that their work may take, and some more, before they are killed."""

import pytest

from llamero.supervisor.home import StartRefused
from llamero.supervisor.parts import stop_seconds


def test_a_part_may_end_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLAMERO_WEB_DRAIN_SECONDS", raising=False)
    assert stop_seconds("web") == 10
    monkeypatch.setenv("LLAMERO_WEB_DRAIN_SECONDS", "30")
    assert stop_seconds("web") == 40
    assert stop_seconds("control") == 5


def test_a_wrong_time_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMERO_DRAIN_SECONDS", "long")
    with pytest.raises(StartRefused, match="LLAMERO_DRAIN_SECONDS is 'long'"):
        stop_seconds("node")
