"""What gives when the cells of a shared KV cache run out?"""

import logging

from inference.cache.prefix_cache import PrefixCache
from inference.engine.counters import Counters
from inference.engine.roster import Roster
from inference.engine.scheduler import choose_victim
from inference.engine.seats import Seats
from inference.engine.sequence import Sequence
from inference.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


class Pressure:
    """Has one sequence wait again, so that the others go on; it loses time and nothing else.

    What it had computed stays in the cache as long as nobody needs the room. Its sampler and its
    text stay as they are, and its tokens are computed again without being sampled again.
    """

    def __init__(
        self, cache: PrefixCache, seats: Seats, roster: Roster, counters: Counters
    ) -> None:
        self._cache, self._seats = cache, seats
        self._roster, self._counters = roster, counters

    def relieve(self) -> None:
        """Make room where the library found none, though there should have been some.

        It has fewer cells than it was asked for, or counts them in another way: what is in use
        now is all that may be counted on.
        """
        num_used = self._cache.num_cells
        self._seats.make_room(self._cache.num_total_cells)
        if self._cache.num_cells < num_used:
            return
        running = self._seats.running
        self._make_way(choose_victim(running), keeps_cells=False)
        if len(running) > 1:
            logger.warning("the KV cache is full with %d cells", num_used)
            self._cache.limit_cells(num_used)

    def preempt(self, sequence: Sequence) -> None:
        """Have a sequence wait again, so that the others find room."""
        self._make_way(sequence, keeps_cells=True)

    def _make_way(self, sequence: Sequence, *, keeps_cells: bool) -> None:
        """Unseat a sequence; one that is alone will never fit, and fails."""
        if len(self._seats.running) == 1:
            message = "The KV cache of this deployment is too small for the request."
            self._roster.fail(sequence, ErrorCode.CONTEXT_LENGTH_EXCEEDED, message)
            return
        logger.info("job %s gives up %d cells", sequence.job.id, sequence.num_computed)
        self._counters.num_jobs_preempted += 1
        sequence.rewind()
        self._seats.unseat(sequence, keeps_cells=keeps_cells)
