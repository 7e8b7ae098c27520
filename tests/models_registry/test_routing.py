"""Requests are shared between deployments: by share, and for each caller the same one."""

from collections import Counter
from dataclasses import dataclass

import pytest

from models_registry.routing import choose_route


@dataclass(frozen=True)
class Route:
    """A deployment as a choice sees it."""

    deployment: str
    share: int = 1
    state: str = "ready"


def count_choices(*routes: Route, num_askers: int = 4000) -> Counter[str]:
    """Count who serves many askers."""
    chosen = (choose_route(routes, f"key:{number}") for number in range(num_askers))
    return Counter(one.deployment for one in chosen if one is not None)


def test_shares_are_kept() -> None:
    counts = count_choices(Route("old", 9), Route("new", 1))

    assert 0.08 < counts["new"] / 4000 < 0.12


def test_an_asker_stays_where_it_is() -> None:
    routes = [Route("a"), Route("b"), Route("c")]

    assert choose_route(routes, "key:7") == choose_route(list(reversed(routes)), "key:7")


def test_a_share_that_grows_takes_no_asker_away_from_itself() -> None:
    before = {n: choose_route([Route("a", 9), Route("b", 1)], f"key:{n}") for n in range(500)}
    after = {n: choose_route([Route("a", 8), Route("b", 2)], f"key:{n}") for n in range(500)}

    assert all(after[n].deployment == "b" for n, one in before.items() if one.deployment == "b")  # type: ignore[union-attr]


def test_one_that_stands_by_serves_when_the_others_cannot() -> None:
    assert count_choices(Route("main"), Route("reserve", 0)) == {"main": 4000}
    assert count_choices(Route("main", state="failed"), Route("reserve", 0)) == {"reserve": 4000}


@pytest.mark.parametrize("state", ["loading", "pending", "failed", "stopped"])
def test_what_does_not_serve_gets_nothing_beside_what_does(state: str) -> None:
    assert count_choices(Route("a"), Route("b", state=state)) == {"a": 4000}


def test_a_sleeping_one_is_woken_by_its_share() -> None:
    assert count_choices(Route("a"), Route("b", state="sleeping"))["b"] > 1000


def test_one_that_loads_is_waited_for_where_there_is_no_other() -> None:
    assert choose_route([Route("a", state="loading"), Route("b", state="failed")], "x") == Route(
        "a", state="loading"
    )


@pytest.mark.parametrize("state", ["pending", "failed", "stopped"])
def test_nobody_is_chosen_where_nobody_serves(state: str) -> None:
    assert choose_route([Route("a", state=state)], "x") is None
    assert choose_route([], "x") is None
