"""Numbers between bounds, exactly, digit by digit."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction

from inference.text.grammar.writer import one_of
from inference.text.json_schema.gbnf import Grammar
from inference.text.json_schema.refusal import Refusal, Unsatisfiable

_MAX_INTEGER_DIGITS = 16
_MAX_BOUND_DIGITS = 30
# Numbers without a bound have at most a digit more than the other bound.
_FAR = Decimal(10 ** (_MAX_BOUND_DIGITS + 2))
MAX_DECIMALS = 6
_MAX_BOUND = Decimal(10**15)
# Up to here different decimals are different doubles, so that none is rounded to the bound.
_MAX_OPEN_BOUND = Decimal(10**9)

Bound = tuple[Decimal, bool]


class Bounds:
    """The range of a number: (value, whether the value itself is left out) or None on each side."""

    def __init__(self, low: Bound | None, high: Bound | None, pointer: str) -> None:
        self.low, self.high, self.pointer = low, high, pointer

    def allow(self, value: int | float | Decimal) -> bool:
        """Tell whether a number is within."""
        number = Decimal(str(value))
        if self.low and (number < self.low[0] or (self.low[1] and number == self.low[0])):
            return False
        return not (
            self.high and (number > self.high[0] or (self.high[1] and number == self.high[0]))
        )

    def within_reach(self) -> "Bounds":
        """Leave out bounds beyond all numbers that are written without one, and no exponent."""
        low = self.low if self.low and self.low[0] > -_FAR else None
        high = self.high if self.high and self.high[0] < _FAR else None
        return Bounds(low, high, self.pointer)


def is_multiple(value: int | float, step: Decimal) -> bool:
    """Tell whether a number is a multiple of a step, exactly as both are written."""
    return Fraction(str(value)) % Fraction(step) == 0


def as_fraction(value: Decimal) -> tuple[int, int]:
    """Give a number as an integer and by how many decimals it is to be shifted."""
    exponent = value.normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    decimals = max(0, -exponent)
    return int(value.scaleb(decimals)), decimals


def integer_item(grammar: Grammar, bounds: Bounds) -> str:
    """Give an item that matches the integers within bounds."""
    bounds = bounds.within_reach()
    if bounds.low is None and bounds.high is None:
        return "integer"
    low = high = None
    for bound in (bounds.low, bounds.high):
        if bound and bound[0].adjusted() >= _MAX_BOUND_DIGITS:
            raise Refusal(bounds.pointer, f"has a bound of more than {_MAX_BOUND_DIGITS} digits")
    if bounds.low:
        value, is_open = bounds.low
        low = int(value.to_integral_value(ROUND_CEILING))
        low += is_open and low == value
    if bounds.high:
        value, is_open = bounds.high
        high = int(value.to_integral_value(ROUND_FLOOR))
        high -= is_open and high == value
    if low is not None and high is not None and low > high:
        raise Unsatisfiable(bounds.pointer, "has bounds that no integer meets")
    return grammar.define(" | ".join(_integers(low, high)))


def number_item(grammar: Grammar, bounds: Bounds) -> str:
    """Give an item that matches decimal numbers, without exponent, within bounds."""
    if bounds.low is None and bounds.high is None:
        return "number"
    bounds = bounds.within_reach()
    decimals = 1
    for bound in (bounds.low, bounds.high):
        if bound:
            exponent = bound[0].normalize().as_tuple().exponent
            assert isinstance(exponent, int)
            decimals = max(decimals, -exponent)
            limit = _MAX_OPEN_BOUND if bound[1] else _MAX_BOUND
            if abs(bound[0]) > limit or decimals > MAX_DECIMALS:
                raise Refusal(bounds.pointer, "has a bound with too many digits for numbers")
    texts = _numbers(bounds.low, bounds.high, decimals)
    if not texts:
        raise Unsatisfiable(bounds.pointer, "has bounds that no number meets")
    return grammar.define(" | ".join(dict.fromkeys(texts)))


def _integers(low: int | None, high: int | None) -> list[str]:
    """Match integers from low to high, both within; None is no bound."""
    texts = []
    if low is None or low < 0:
        top = -high if high is not None and high < 0 else 1
        texts += [f'"-" {text}' for text in _naturals(top, None if low is None else -low)]
    if high is None or high >= 0:
        texts += _naturals(max(low or 0, 0), high)
    return texts


def _naturals(low: int, high: int | None) -> list[str]:
    """Match the numbers from low (not below 0) to high."""
    if high is not None and low > high:
        return []
    texts = []
    num_digits = len(str(low))
    last = len(str(high)) if high is not None else max(_MAX_INTEGER_DIGITS, num_digits + 1)
    if high is None and num_digits < last:
        texts.append(f"[1-9] {_digits(num_digits, last - 1)}")
        high = 10**num_digits - 1
        last = num_digits
    assert high is not None
    for length in range(num_digits, last + 1):
        first = str(max(low, 10 ** (length - 1) if length > 1 else 0))
        texts.append(_between(first, str(min(high, 10**length - 1))))
    return texts


def _between(low: str, high: str) -> str:
    """Match the strings of digits from low to high, all of one length."""
    if not low:
        return '""'
    if low == "0" * len(low) and high == "9" * len(high):
        return _digits(len(low), len(low))
    first, last = int(low[0]), int(high[0])
    rest = len(low) - 1
    if first == last:
        return f'"{first}" {_between(low[1:], high[1:])}' if rest else f'"{first}"'
    texts = []
    if low[1:] != "0" * rest:
        texts.append(f'"{first}" {_between(low[1:], "9" * rest)}')
        first += 1
    tail = ""
    if high[1:] != "9" * rest:
        tail = f'"{last}" {_between("0" * rest, high[1:])}'
        last -= 1
    if first <= last:
        texts.append(
            f"{_digit(first, last)} {_digits(rest, rest)}" if rest else _digit(first, last)
        )
    return one_of([*texts, tail] if tail else texts)


def _numbers(low: Bound | None, high: Bound | None, decimals: int) -> list[str]:
    zero = (Decimal(0), False)
    texts = []
    if low is None or low[0] < 0:
        # Mirrored: the smallest magnitude is the greatest number.
        least = (-high[0], high[1]) if high is not None and high[0] <= 0 else zero
        most = None if low is None else (-low[0], low[1])
        texts += [f'"-" {text}' for text in _magnitudes(least, most, decimals)]
    if high is None or high[0] >= 0:
        least = low if low is not None and low[0] >= 0 else zero
        texts += _magnitudes(least, high, decimals)
    return texts


def _magnitudes(low: Bound, high: Bound | None, decimals: int) -> list[str]:
    """Match the numbers from low (not below 0) to high by whole part and decimals."""
    if high is not None and low[0] > high[0]:
        return []
    unit = 10**decimals
    first, lowest = divmod(int(low[0] * unit), unit)
    more = f'("." {_digits(1, MAX_DECIMALS)})?'
    if high is None:
        below_next = _decimals(first, (lowest, low[1]), (unit, True), decimals)
        return [*below_next, *_followed(_naturals(first + 1, None), more)]
    last, highest = divmod(int(high[0] * unit), unit)
    if first == last:
        return _decimals(first, (lowest, low[1]), (highest, high[1]), decimals)
    return [
        *_decimals(first, (lowest, low[1]), (unit, True), decimals),
        *_followed(_naturals(first + 1, last - 1), more),
        *_decimals(last, (0, False), (highest, high[1]), decimals),
    ]


def _decimals(
    whole: int, low: tuple[int, bool], high: tuple[int, bool], decimals: int
) -> list[str]:
    """Match a whole part with its first decimals from low to high; True leaves the bound out."""
    num_more = MAX_DECIMALS - decimals
    texts = [f'"{whole}"'] if low == (0, False) and high != (0, True) else []
    least = low[0] + low[1]
    if low[1] and low[0] < high[0] and num_more:
        zeros = f' "0"{{0,{num_more - 1}}}' if num_more > 1 else ""
        texts.append(f'"{whole}.{low[0]:0{decimals}}"{zeros} [1-9]')
    if least < high[0]:
        digits = _between(f"{least:0{decimals}}", f"{high[0] - 1:0{decimals}}")
        more = f" {_digits(0, num_more)}" if num_more else ""
        texts.append(f'"{whole}." {digits}{more}')
    if not high[1] and least <= high[0]:
        texts.append(f'"{whole}.{high[0]:0{decimals}}"')
    return texts


def _followed(texts: list[str], tail: str) -> list[str]:
    return [f"{one_of(texts)} {tail}"] if texts else []


def _digit(first: int, last: int) -> str:
    return f'"{first}"' if first == last else f"[{first}-{last}]"


def _digits(least: int, most: int) -> str:
    if least == most:
        return "[0-9]" if least == 1 else f"[0-9]{{{least}}}"
    return f"[0-9]{{{least},{most}}}"
