"""How many replicas a deployment should have: pure, with hysteresis between more and fewer."""

from dataclasses import dataclass, replace

from llamero.control.world import Load
from models_registry.selectors import DeploymentTarget

# More: so much of all slots waits once more, or first tokens are late, for a while.
PRESSED_SHARE = 0.5
PRESSED_SECONDS = 3.0
PAUSE_AFTER_MORE_SECONDS = 10.0
# Fewer: nothing waits, and one replica less would be half idle still, for a long while.
SLACK_SHARE = 0.5
SLACK_SECONDS = 60.0
PAUSE_AFTER_FEWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How many replicas are wanted, since when there is too much or too little to do."""

    num_wanted: int
    pressed_since: float | None = None
    slack_since: float | None = None
    changed_at: float = float("-inf")


def rescale(target: DeploymentTarget, load: Load, before: Pace | None, now: float) -> Pace:
    """Give the pace that follows; without one before, what runs counts as wanted."""
    if target.min_replicas == 0 and not is_awake(target, load, now):
        return Pace(0)
    low, high = max(1, target.min_replicas), max(1, target.max_replicas)
    num_before = load.num_placed if before is None else before.num_wanted
    pace = replace(before or Pace(0), num_wanted=max(low, min(high, num_before)))
    pace = replace(
        pace,
        pressed_since=_since(pace.pressed_since, now, holds=_is_pressed(target, load)),
        slack_since=_since(pace.slack_since, now, holds=_is_slack(target, load, pace.num_wanted)),
    )
    if _has_lasted(pace.pressed_since, now, PRESSED_SECONDS) and (
        load.num_ready >= pace.num_wanted < high
        and now - pace.changed_at >= PAUSE_AFTER_MORE_SECONDS
    ):
        return Pace(min(high, pace.num_wanted + _num_more(load)), changed_at=now)
    if _has_lasted(pace.slack_since, now, SLACK_SECONDS) and (
        pace.num_wanted > low and now - pace.changed_at >= PAUSE_AFTER_FEWER_SECONDS
    ):
        return Pace(pace.num_wanted - 1, changed_at=now)
    return pace


def is_awake(target: DeploymentTarget, load: Load, now: float) -> bool:
    """Whether a deployment without a minimum should run: while it works, and for a while after."""
    if load.is_busy:
        return True
    timeout = target.idle_timeout_seconds
    return load.used_at > 0 and (timeout == 0 or now - load.used_at < timeout)


def _is_pressed(target: DeploymentTarget, load: Load) -> bool:
    if not load.num_ready or not load.num_waiting:
        return False
    is_late = 0 < target.target_ttft_seconds < load.ttft_seconds
    return is_late or load.num_waiting > PRESSED_SHARE * load.num_slots


def _is_slack(target: DeploymentTarget, load: Load, num_wanted: int) -> bool:
    if load.num_waiting or load.num_ready < num_wanted:
        return False
    # Halfway to the target, so that what was added because of it is not taken away for it.
    if 0 < target.target_ttft_seconds < 2 * load.ttft_seconds:
        return False
    slots_left = load.num_slots * (num_wanted - 1) / num_wanted
    return load.num_running <= SLACK_SHARE * slots_left


def _num_more(load: Load) -> int:
    """Add what the queue would fill, at most as many as there are."""
    slots_each = max(1, load.num_slots // load.num_ready)
    return max(1, min(load.num_ready, load.num_waiting // slots_each))


def _since(before: float | None, now: float, *, holds: bool) -> float | None:
    if not holds:
        return None
    return now if before is None else before


def _has_lasted(since: float | None, now: float, seconds: float) -> bool:
    return since is not None and now - since >= seconds
