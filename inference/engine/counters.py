"""What has the engine done so far?"""

from inference.engine.plan import StepPlan


class Counters:
    """Plain numbers, written by the engine thread alone and read by any."""

    def __init__(self) -> None:
        self.num_steps = 0
        self.num_decode_steps = 0
        self.num_decoded_tokens = 0
        self.num_prompt_tokens = 0
        self.num_cached_tokens = 0
        self.num_jobs_done = 0
        self.num_jobs_failed = 0
        self.num_jobs_cancelled = 0
        self.num_jobs_preempted = 0
        self.num_drafted_tokens = 0
        self.num_accepted_tokens = 0
        self.num_drafts = 0
        self.accepted_by_position: tuple[int, ...] = ()
        self.longest_sequence = 0
        self.num_batch_sequences = 0
        self.prompt_seconds = 0.0
        self.decode_seconds = 0.0
        self.last_step_at = 0.0

    def count_step(self, plan: StepPlan, seconds: float, now: float) -> None:
        """Add a step; its time is shared between prompt and decode by their tokens."""
        self.num_steps += 1
        self.num_prompt_tokens += plan.num_prefill_tokens
        self.last_step_at = now
        if plan.num_decode:
            self.num_decode_steps += 1
            self.num_batch_sequences += plan.num_decode
        prompt_share = plan.num_prefill_tokens / (plan.num_prefill_tokens + plan.num_decode)
        self.prompt_seconds += seconds * prompt_share
        self.decode_seconds += seconds * (1 - prompt_share)

    def count_draft(self, num_drafted: int, num_right: int) -> None:
        """Add a guess of some tokens, the first of which were right."""
        self.num_drafts += 1
        self.num_drafted_tokens += num_drafted
        self.num_accepted_tokens += num_right
        known = self.accepted_by_position
        known += (0,) * (num_drafted - len(known))
        self.accepted_by_position = tuple(
            count + (at < num_right) for at, count in enumerate(known)
        )

    def count_embedding(self, num_tokens: int, seconds: float, now: float) -> None:
        """Add a batch of embeddings: prompt work only."""
        self.num_steps += 1
        self.num_prompt_tokens += num_tokens
        self.prompt_seconds += seconds
        self.last_step_at = now
