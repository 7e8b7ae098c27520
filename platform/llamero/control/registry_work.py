"""Have the registry go on with imports that were cut off, and probe again with a new engine."""

from inference.gguf.build import engine_build
from inference.relay.connect import SyncRedis
from models_registry.tasks import look_after_imports_task, probe_again_task

LOOKED_AFTER = "lm:imports-looked-after"
PROBED = "lm:probed:"
LOOK_SECONDS = 20
PROBE_SECONDS = 3600


def look_after_registry(redis: SyncRedis) -> None:
    """Ask for both, now and then; a build of the engine that is new here is asked for at once."""
    if redis.set(LOOKED_AFTER, 1, nx=True, ex=LOOK_SECONDS):
        look_after_imports_task.delay()
    if redis.set(PROBED + engine_build(), 1, nx=True, ex=PROBE_SECONDS):
        probe_again_task.delay()
