"""What every node should run: one pure function of what is wanted, and of what is so.

How many replicas a deployment should have is ``scaling``'s question, which of them stay while it
changes ``rollout``'s, where new ones go, and what makes way for them, ``placement``'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference.protocol.replicas import ReplicaSpec
from llamero.control.observation import Verdict, observe
from llamero.control.placement import Obstacle, Placer
from llamero.control.rollout import Turn, take_turn
from llamero.control.scaling import Pace, rescale
from llamero.control.world import (
    Load,
    Sight,
    World,
    group_statuses,
    is_runnable,
    list_standings,
    look,
    number_of,
    sum_loads,
)
from models_registry.models import DeploymentState


@dataclass(frozen=True, slots=True)
class Memory:
    """What a controller remembers between two decisions; one without any decides soundly too."""

    paces: Mapping[str, Pace] = field(default_factory=dict)
    sight: Sight = field(default_factory=Sight)


@dataclass(frozen=True, slots=True)
class Decision:
    """The specs of every live node, each deployment's state, and what to remember.

    ``asleep`` are deployments whose use is to be forgotten; ``busy`` those that are used now;
    ``expected`` those that will have a replica, although none may have begun to start.
    """

    specs: dict[str, tuple[ReplicaSpec, ...]]
    verdicts: dict[str, Verdict]
    asleep: frozenset[str]
    busy: frozenset[str]
    expected: frozenset[str]
    next_numbers: dict[str, int]
    memory: Memory


def decide(world: World, memory: Memory) -> Decision:
    """Decide once. The same world and memory give the same decision."""
    world, sight = look(world, memory.sight)
    loads = sum_loads(world)
    paces = {
        target.deployment: rescale(
            target, loads[target.deployment], memory.paces.get(target.deployment), world.now
        )
        for target in world.targets
        if is_runnable(target)
    }
    turns = {
        target.deployment: take_turn(
            list_standings(world, target), paces[target.deployment].num_wanted
        )
        for target in world.targets
        if target.deployment in paces
    }
    placer = Placer(world, turns, loads)
    numbers = _first_numbers(world)
    obstacles = _start_missing(world, loads, turns, placer, numbers)
    for deployment in placer.asleep:
        paces[deployment] = Pace(0)
    verdicts = _judge(world, paces, turns, placer, obstacles)
    return Decision(
        specs={node: _ordered(specs) for node, specs in placer.chosen.items()},
        verdicts=verdicts,
        asleep=frozenset(placer.asleep),
        busy=frozenset(name for name, load in loads.items() if load.is_busy),
        expected=frozenset(
            name
            for name, verdict in verdicts.items()
            if verdict.state is DeploymentState.LOADING
            or (name in obstacles and obstacles[name].will_pass)
        ),
        next_numbers=numbers,
        memory=Memory(paces, sight),
    )


def _start_missing(
    world: World,
    loads: Mapping[str, Load],
    turns: Mapping[str, Turn],
    placer: Placer,
    numbers: dict[str, int],
) -> dict[str, Obstacle]:
    """Place every missing replica that finds room: first one of each deployment, then a second.

    Pinned deployments come first, then those that were used last.
    """
    missing = [target for target in world.targets if target.deployment in turns]
    missing.sort(key=lambda one: (not one.min_replicas, -loads[one.deployment].used_at))
    obstacles: dict[str, Obstacle] = {}
    most = max((turn.num_missing for turn in turns.values()), default=0)
    for turn_number in range(most):
        for target in missing:
            name = target.deployment
            is_due = turns[name].num_missing > turn_number
            if not is_due or name in obstacles or name in placer.asleep:
                continue
            obstacle = placer.add(target, f"{name}.{numbers.get(name, 0)}")
            if obstacle is None:
                numbers[name] = numbers.get(name, 0) + 1
            elif placer.is_idle(target):
                placer.asleep.add(name)
            else:
                obstacles[name] = obstacle
    return obstacles


def _first_numbers(world: World) -> dict[str, int]:
    """Give each deployment's first unused number; those of lost nodes may still be in use."""
    numbers = dict(world.next_numbers)
    named = [(s.deployment, s.replica) for specs in world.placed.values() for s in specs]
    named += [(status.deployment, status.replica) for status in world.statuses]
    for deployment, replica in named:
        numbers[deployment] = max(numbers.get(deployment, 0), number_of(replica) + 1)
    return numbers


def _judge(
    world: World,
    paces: Mapping[str, Pace],
    turns: Mapping[str, Turn],
    placer: Placer,
    obstacles: Mapping[str, Obstacle],
) -> dict[str, Verdict]:
    statuses = group_statuses(world.statuses)
    placed = {spec.deployment for specs in placer.chosen.values() for spec in specs}
    placed |= {name for name, turn in turns.items() if turn.keep}  # on silent nodes, too
    verdicts = {}
    for target in world.targets:
        name = target.deployment
        num_wanted = paces[name].num_wanted if name in paces else 0
        verdicts[name] = observe(
            target,
            statuses.get(name, ()),
            num_wanted=num_wanted,
            is_placed=name in placed,
            obstacle=obstacles.get(name),
            turn=turns.get(name),
        )
    return verdicts


def _ordered(specs: list[ReplicaSpec]) -> tuple[ReplicaSpec, ...]:
    return tuple(sorted(specs, key=lambda spec: spec.replica))
