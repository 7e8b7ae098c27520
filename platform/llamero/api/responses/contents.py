"""What is stored of a response: what was asked, how it is told, and how it ended."""

from collections.abc import Sequence
from typing import Any

import msgspec

from inference.protocol.events import Event, Progress, Started
from llamero.api.responses.document import Document
from llamero.api.responses.items import Item
from llamero.api.responses.writer import ResponseRecipe, judge
from llamero.conversations.models import ResponseState, StoredResponse
from llamero.conversations.packing import unpack


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a request added to its conversation, and the recipe of its answer."""

    input: list[Item]
    recipe: ResponseRecipe


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The document of a response that has ended.

    ``events`` are those of its job, by which its stream can be told again when the broker has
    forgotten them; only one that goes on without its client has them.
    """

    document: Document
    events: tuple[Event, ...] = ()

    @property
    def state(self) -> ResponseState:
        """What became of it."""
        return ResponseState(self.document["status"])


def make_outcome(recipe: ResponseRecipe, events: Sequence[Event], *, is_retold: bool) -> Outcome:
    """Judge a job that has told all its events. ``is_retold`` keeps those that matter for that."""
    dropped = (Started, Progress) if recipe.extras is None else ()
    told = tuple(event for event in events if type(event) not in dropped)
    return Outcome(document=judge(recipe, events), events=told if is_retold else ())


def question_of(row: StoredResponse) -> Question:
    """Read what was asked."""
    return unpack(row.question, Question)


def outcome_of(row: StoredResponse) -> Outcome | None:
    """Read how it ended, if it has."""
    return None if row.outcome is None else unpack(row.outcome, Outcome)


def items_of(row: StoredResponse) -> list[Item]:
    """Give what a response added to its conversation, question and answer."""
    outcome = outcome_of(row)
    output: list[dict[str, Any]] = outcome.document["output"] if outcome else []
    return [*question_of(row).input, *output]
