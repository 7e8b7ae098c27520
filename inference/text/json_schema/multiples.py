"""Numbers that are multiples of another: listed where they are few, else digit by digit.

A number is an integer of units: of the step's last decimal. Digits from the left, what is read so
far leaves a remainder, and the last digit must leave none.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import gcd

from inference.text.grammar.writer import char_class, literal, one_of
from inference.text.json_schema.gbnf import Grammar
from inference.text.json_schema.numbers import MAX_DECIMALS, Bounds, as_fraction
from inference.text.json_schema.refusal import Refusal, Unsatisfiable
from inference.text.json_schema.tries import any_text

_MAX_LISTED = 1000
# Remainders times digits: one rule for each.
_MAX_RULES = 500
_MAX_DIGITS = 15


def multiples_item(grammar: Grammar, bounds: Bounds, step: Decimal, kind: str) -> str:
    """Give an item that matches the multiples of a step within bounds; raises Refusal."""
    units, decimals = as_fraction(step)
    if kind == "integer":
        units, decimals = units // gcd(units, 10**decimals), 0
    if decimals > MAX_DECIMALS or units >= 10**_MAX_DIGITS:
        raise Refusal(f"{bounds.pointer}/multipleOf", "has too many digits")
    digits = _Digits(grammar, units, decimals, f"{bounds.pointer}/multipleOf")
    low, high = _in_units(bounds, decimals)
    if low is not None and high is not None:
        first, last = -(-low // units), high // units
        if last - first < _MAX_LISTED:
            listed = [digits.spell(units * n) for n in range(first, last + 1)]
            if not listed:
                raise Unsatisfiable(bounds.pointer, "has bounds that no multiple meets")
            return grammar.define(any_text(grammar, listed))
    items = []
    if high is None or high >= 0:
        items.append(digits.between(max(low or 0, 0), high))
    if low is None or low < 0:
        least = max(1, -high) if high is not None else 1
        items.append(f'"-" {digits.between(least, None if low is None else -low)}')
    return grammar.define(one_of(items))


def _in_units(bounds: Bounds, decimals: int) -> tuple[int | None, int | None]:
    """Give the least and the greatest number of units within bounds."""
    low = high = None
    for bound in (bounds.low, bounds.high):
        if bound and abs(bound[0]) >= 10**_MAX_DIGITS:
            raise Refusal(bounds.pointer, "has a bound with too many digits for a multipleOf")
    if bounds.low:
        scaled = bounds.low[0].scaleb(decimals)
        low = int(scaled.to_integral_value(ROUND_CEILING))
        low += bounds.low[1] and low == scaled
    if bounds.high:
        scaled = bounds.high[0].scaleb(decimals)
        high = int(scaled.to_integral_value(ROUND_FLOOR))
        high -= bounds.high[1] and high == scaled
    return low, high


class _Digits:
    """Writes the multiples of some units, of which ``10**decimals`` make one."""

    def __init__(self, grammar: Grammar, units: int, decimals: int, place: str) -> None:
        self._grammar, self._units, self._decimals, self._place = grammar, units, decimals, place
        self._rules: dict[tuple[int, int], str | None] = {}
        # What of the units no power of ten holds: so many remainders matter for long.
        self._odd = units // gcd(units, 10**_MAX_DIGITS)

    def spell(self, number: int) -> str:
        """Write a number of units as a decimal."""
        whole, rest = divmod(abs(number), 10**self._decimals)
        text = f"{whole}.{rest:0{self._decimals}}".rstrip("0") if rest else str(whole)
        return f"-{text}" if number < 0 else text

    def between(self, low: int, high: int | None) -> str:
        """Give an item that matches the multiples from low (not below 0) to high units."""
        room = max(self._decimals + 2, len(str(self._units)) + 2)
        room = max(room, min(_MAX_DIGITS, _MAX_RULES // self._odd))
        last = len(str(high)) if high is not None else max(room, len(str(low)) + 1)
        items = []
        for length in range(max(len(str(low)), self._decimals + 1), last + 1):
            least = 10 ** (length - 1) if length > self._decimals + 1 else 0
            greatest = 10**length - 1
            texts = self._same_length(
                f"{max(low, least):0{length}}",
                f"{greatest if high is None else min(high, greatest):0{length}}",
            )
            items += texts
        if not items:
            raise Unsatisfiable(self._place, "has no multiple within the bounds")
        return one_of(items)

    def _same_length(self, low: str, high: str, before: str = "") -> list[str]:
        """Give items for the multiples between two texts of digits that begin alike."""
        if low > high:
            return []
        at = len(before)
        if set(low[at:]) <= {"0"} and set(high[at:]) <= {"9"}:
            return self._free(before, len(low) - at)
        items = []
        for digit in range(int(low[at]), int(high[at]) + 1):
            begin = before + str(digit)
            rest = len(low) - at - 1
            least = low if low.startswith(begin) else begin + "0" * rest
            most = high if high.startswith(begin) else begin + "9" * rest
            items += self._same_length(least, most, begin)
        return items

    def _free(self, before: str, rest: int) -> list[str]:
        """Give an item for any digits behind those read, so that there is no remainder."""
        tail = self._rule(rest, int(before or "0") % self._units)
        if tail is None:
            return []
        if not rest:
            return [literal(self.spell(int(before)))]
        num_whole = len(before) + rest - self._decimals
        text = before
        if len(before) > num_whole:
            text = f"{before[:num_whole]}.{before[num_whole:]}"
        return [f"{literal(text)} {tail}" if text else tail]

    def _rule(self, rest: int, remainder: int) -> str | None:
        """Give the item for so many more digits; None where none of them fits."""
        if -remainder * 10**rest % self._units >= 10**rest:
            return None
        remainder %= self._units // gcd(self._units, 10**rest)
        key = (rest, remainder)
        if key not in self._rules:
            self._grammar.spend()
            if len(self._rules) >= _MAX_RULES * 2:
                raise Refusal(self._place, "is too large for numbers of this range")
            self._rules[key] = self._write(rest, remainder)
        return self._rules[key]

    def _write(self, rest: int, remainder: int) -> str | None:
        options = []
        if rest <= self._decimals and remainder * 10**rest % self._units == 0:
            # Only zeros behind the point are left, which need not be written.
            options.append('""')
        followers: dict[str, list[int]] = {}
        for digit in range(10) if rest else ():
            tail = self._rule(rest - 1, (remainder * 10 + digit) % self._units)
            if tail is not None:
                followers.setdefault(tail, []).append(digit)
        point = '"." ' if rest == self._decimals and rest else ""
        for tail, digits in followers.items():
            options.append(f"{point}{char_class(tuple((48 + d, 48 + d) for d in digits))} {tail}")
        return self._grammar.define(" | ".join(options)) if options else None
