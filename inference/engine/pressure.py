"""What gives when the cells of a shared KV cache run out?"""

import logging

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

    def __init__(self, seats: Seats, roster: Roster, counters: Counters) -> None:
        self._seats, self._roster, self._counters = seats, roster, counters

    def relieve(self) -> None:
        """Choose a victim where the library found no room that should have been there."""
        self.preempt(choose_victim(self._seats.running))

    def preempt(self, sequence: Sequence) -> None:
        """Have a sequence wait again; one that is alone will never fit, and fails."""
        if len(self._seats.running) == 1:
            message = "The KV cache of this deployment is too small for the request."
            self._roster.fail(sequence, ErrorCode.CONTEXT_LENGTH_EXCEEDED, message)
            return
        logger.info("job %s gives up %d cells", sequence.job.id, sequence.num_computed)
        self._counters.num_jobs_preempted += 1
        sequence.rewind()
        self._seats.unseat(sequence)
