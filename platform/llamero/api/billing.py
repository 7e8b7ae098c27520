"""What the jobs of a request take along for the ledger, and their prompts where those are kept."""

from collections.abc import Sequence

from inference.protocol.jobs import GenerationJob
from inference.protocol.text import Detokenize
from llamero.accounts.callers import Caller
from llamero.api.questions import ask_text
from llamero.usage.bill import make_bill
from models_registry.selectors import ServedModel


async def bill_jobs(
    jobs: Sequence[GenerationJob], served: ServedModel, caller: Caller
) -> list[bytes]:
    """Make the bill of each job; where texts are kept the model is asked to spell the prompts."""
    if not served.text_retention_days:
        return [make_bill(served, caller)] * len(jobs)
    prompts: dict[tuple[int, ...], str] = {}
    for job in jobs:
        tokens = job.prompt_tokens
        if tokens not in prompts:
            prompts[tokens] = (await ask_text(served.deployment, Detokenize(tokens=tokens))).text
    return [make_bill(served, caller, prompts[job.prompt_tokens]) for job in jobs]
