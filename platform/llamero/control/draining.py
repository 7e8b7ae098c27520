"""Deployments that are being emptied: they are disabled once they have answered what they have."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from llamero.control.world import World
from models_registry.services.deployments import finish_draining

logger = logging.getLogger(__name__)

# A gateway may know for a second that a deployment takes requests, and send one as late as that.
QUIET_SECONDS = 3.0


@dataclass(slots=True)
class Drains:
    """Since when each deployment that drains has had nothing to do."""

    quiet_since: dict[str, float] = field(default_factory=dict)

    def finish(self, world: World, busy: Collection[str]) -> None:
        """Disable those that have been quiet for a while."""
        draining = {target.deployment for target in world.targets if target.is_draining}
        quiet = draining - set(busy)
        self.quiet_since = {name: self.quiet_since.get(name, world.now) for name in quiet}
        for name, since in self.quiet_since.items():
            if world.now - since >= QUIET_SECONDS and finish_draining(slug=name):
                logger.info("deployment %s has answered what it had, and stops", name)
