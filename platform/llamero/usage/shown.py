"""Lines of a report as people read them: one under each heading, whatever currencies it cost in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from llamero.usage.models.hour import COUNTS
from llamero.usage.money import write_money
from llamero.usage.reports import ReportLine

_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ShownLine:
    """What was used under one heading. ``sums`` are of all jobs, but have no cost.

    ``costs`` are written out, one for each currency. ``num_unpriced`` jobs had no price.
    """

    sums: ReportLine
    costs: tuple[str, ...]
    num_unpriced: int

    @property
    def has_free_jobs(self) -> bool:
        """Whether the costs are of some of the jobs only."""
        return bool(self.costs and self.num_unpriced)


def show_lines(lines: Iterable[ReportLine]) -> list[ShownLine]:
    """Put what is under the same heading together, in the order of reports."""
    headings: dict[object, list[ReportLine]] = {}
    for line in lines:
        headings.setdefault((line.time, *sorted(line.ids.items())), []).append(line)
    shown = [_add_up(parts) for parts in headings.values()]
    return sorted(shown, key=lambda one: (one.sums.time or _FIRST, -one.sums.num_tokens))


def _add_up(parts: Sequence[ReportLine]) -> ShownLine:
    counts = {name: sum(getattr(one, name) for one in parts) for name in COUNTS if name != "cost"}
    priced = sorted((one for one in parts if one.currency), key=lambda one: one.currency)
    return ShownLine(
        replace(parts[0], currency="", cost=Decimal(0), **counts),
        tuple(f"{write_money(one.cost)} {one.currency}" for one in priced),
        sum(one.num_jobs for one in parts if not one.currency),
    )
