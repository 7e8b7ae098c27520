"""Which node a new replica goes to, and what makes way for it where no node has room."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inference.gguf.memory import MemoryEstimate
from inference.protocol.nodes import usable_gpus
from inference.protocol.replicas import ReplicaSpec, ReplicaStatus
from llamero.control.rollout import Turn
from llamero.control.rooms import room_of
from llamero.control.world import Load, Standing, World, open_nodes, spec_of
from models_registry.rooms import Room
from models_registry.selectors import DeploymentTarget

# One that was used a moment ago is likely to be used again in a moment.
IDLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a replica is nowhere. ``will_pass``: what is in its way is ending."""

    reason: str
    will_pass: bool = False


NO_NODE = Obstacle("No node is running.")
NONE_OPEN = Obstacle("Waits for a node: every node is cordoned or draining.")
FAILED_ON_ALL = Obstacle("It failed on every node that it may run on.")
FREEING = Obstacle("Waits for memory that is being freed.", will_pass=True)


class Placer:
    """Carries what is chosen so far in one decision; made for it, and thrown away after it."""

    def __init__(self, world: World, turns: Mapping[str, Turn], loads: Mapping[str, Load]) -> None:
        self._world = world
        self._turns = turns
        self._loads = loads
        self._targets = {target.deployment: target for target in world.targets}
        nodes = open_nodes(world)
        self._gpus = {node.node: usable_gpus(node.devices) for node in nodes}
        # A silent node is told nothing.
        self.chosen: dict[str, list[ReplicaSpec]] = {node.node: [] for node in world.nodes}
        for standing in self._standing():
            if standing.node in self.chosen:
                self.chosen[standing.node].append(standing.spec)
        statuses = {status.replica: status for status in world.statuses}
        self._rooms: dict[str, Room] = {
            node.node: room_of(node, self.chosen[node.node], self._targets, statuses)
            for node in nodes
        }
        self._estimates: dict[tuple[str, str], MemoryEstimate | None] = {}
        self._started: set[str] = set()
        self.asleep: set[str] = set()

    def add(self, target: DeploymentTarget, replica: str) -> Obstacle | None:
        """Put a replica on a node, or tell why not; then what may make way for it has its end."""
        rooms = self._rooms
        if not rooms:
            return NONE_OPEN if self._world.nodes else NO_NODE
        nodes = self._untried(target)
        if not nodes:
            return FAILED_ON_ALL
        fitting = [name for name in nodes if rooms[name].holds(self._estimate(target, name))]
        if fitting or target.ignores_memory:
            best = max(fitting or nodes, key=lambda name: self._preference(target, name))
            rooms[best] = rooms[best].without(self._estimate(target, best))
            self.chosen[best].append(spec_of(target, replica))
            self._started.add(target.deployment)
            return None
        if self._make_room(target, nodes):
            return FREEING
        return Obstacle(f"No node has room: {'; '.join(self._shortages(target))}.")

    def _untried(self, target: DeploymentTarget) -> list[str]:
        """Give the open nodes where no such replica has failed."""
        failed = {standing.node for standing in self._turns[target.deployment].failed}
        return [name for name in self._rooms if name not in failed]

    def _standing(self) -> Iterable[Standing]:
        for turn in self._turns.values():
            yield from turn.keep
            yield from turn.outgoing
            yield from turn.failed

    def _estimate(self, target: DeploymentTarget, node: str) -> MemoryEstimate | None:
        key = target.deployment, node
        if key not in self._estimates:
            self._estimates[key] = target.estimate(self._gpus[node])
        return self._estimates[key]

    def _preference(self, target: DeploymentTarget, node: str) -> tuple[bool, int, int, int]:
        """GPUs first; then apart from its like, so that no one node takes them all; then room."""
        room = self._rooms[node]
        num_alike = sum(spec.deployment == target.deployment for spec in self.chosen[node])
        gpu_bytes = sum(gpu.free_bytes for gpu in room.gpus)
        return gpu_bytes > 0, -num_alike, gpu_bytes, room.host_bytes

    def _shortages(self, target: DeploymentTarget) -> list[str]:
        found = ((room, self._estimate(target, name)) for name, room in self._rooms.items())
        return [room.describe_shortage(estimate) for room, estimate in found if estimate]

    def _make_room(self, target: DeploymentTarget, nodes: Sequence[str]) -> bool:
        """Wait for what ends already, else end an old replica of its own, else idle others."""
        if self.is_idle(target):
            return False  # nobody waits for it
        if any(self._would_hold(target, node, ()) for node in nodes):
            return True
        return self._give_up_old(target) or self._send_to_sleep(target, nodes)

    def _would_hold(self, target: DeploymentTarget, node: str, ending: Iterable[str]) -> bool:
        """Whether a node has room when what ends there, and replicas of these, have ended."""
        room = self._rooms[node]
        for deployment in (*(status.deployment for status in self._ending(node)), *ending):
            if (gone := self._targets.get(deployment)) is not None:
                room = room.with_released(self._estimate(gone, node))
        return room.holds(self._estimate(target, node))

    def _ending(self, node: str) -> list[ReplicaStatus]:
        """Give the replicas that are still there, but should not be."""
        names = {spec.replica for spec in self.chosen[node]}
        return [
            status
            for status in self._world.statuses
            if status.node == node and status.replica not in names
        ]

    def _give_up_old(self, target: DeploymentTarget) -> bool:
        """End one old replica before its successor is there: only where both do not fit."""
        turn = self._turns[target.deployment]
        ending = (status for node in self._rooms for status in self._ending(node))
        is_in_change = target.deployment in self._started or not turn.is_settled
        if is_in_change or any(status.deployment == target.deployment for status in ending):
            return False
        for old in reversed(turn.outgoing):
            is_here = old.node in self._rooms and old.spec in self.chosen[old.node]
            if is_here and self._would_hold(target, old.node, (target.deployment,)):
                self.chosen[old.node].remove(old.spec)
                return True
        return False

    def _send_to_sleep(self, target: DeploymentTarget, nodes: Sequence[str]) -> bool:
        """Send the fewest idle deployments to sleep, those first that were used longest ago."""
        best: tuple[int, int, list[DeploymentTarget]] | None = None
        idle = self._idle_before(target)
        for order, node in enumerate(nodes):
            sent: list[DeploymentTarget] = []
            ending: list[str] = []
            for one in idle:
                here = [s for s in self.chosen[node] if s.deployment == one.deployment]
                if not here:
                    continue
                sent.append(one)
                ending += [one.deployment] * len(here)
                if self._would_hold(target, node, ending):
                    best = min(best or (len(sent), order, sent), (len(sent), order, sent))
                    break
        if best is None:
            return False
        for one in best[2]:
            self._put_out(one.deployment)
        return True

    def _put_out(self, deployment: str) -> None:
        self.asleep.add(deployment)
        for specs in self.chosen.values():
            specs[:] = [spec for spec in specs if spec.deployment != deployment]

    def _idle_before(self, target: DeploymentTarget) -> list[DeploymentTarget]:
        """Give what may be sent away for a deployment, the longest unused first."""
        used_at = self._loads[target.deployment].used_at
        return sorted(
            (
                one
                for one in self._world.targets
                if self.is_idle(one)
                and (target.min_replicas or self._loads[one.deployment].used_at < used_at)
            ),
            key=lambda one: (self._loads[one.deployment].used_at, one.deployment),
        )

    def is_idle(self, target: DeploymentTarget) -> bool:
        """Whether nobody would miss a deployment now. One with a minimum is pinned."""
        load = self._loads[target.deployment]
        is_unused = self._world.now - load.used_at >= IDLE_SECONDS
        return not target.min_replicas and not load.is_busy and is_unused
