"""Amounts of money that no database rounds."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import models

# A price has four decimals and is for a million tokens: so the cost of a token has ten.
PRICE_DECIMALS = 4
MONEY_DECIMALS = PRICE_DECIMALS + 6
TOKENS_OF_A_PRICE = 10**6


if TYPE_CHECKING:
    # What the column holds is no concern of those who use it.
    _Whole = models.Field[Any, Any]
else:
    _Whole = models.BigIntegerField


class MoneyField(_Whole):
    """A Decimal with ten places, kept as a whole number of the last of them.

    SQLite would make a floating-point number of a decimal. The sum of a column is exact too, up to
    900 million units of money in SQLite.
    """

    def get_prep_value(self, value: Any) -> int | None:
        """Give the whole number; raises ValueError for what has more places."""
        if value is None:
            return None
        scaled = Decimal(value).scaleb(MONEY_DECIMALS)
        whole = scaled.to_integral_value()
        if whole != scaled:
            raise ValueError(f"{value} has more than {MONEY_DECIMALS} decimal places")
        return int(whole)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Decimal | None:
        """Give the amount."""
        return None if value is None else Decimal(int(value)).scaleb(-MONEY_DECIMALS)

    def to_python(self, value: Any) -> Decimal | None:
        """Give the amount as it is, not as it is kept."""
        return None if value is None else Decimal(value)


def write_money(amount: Decimal) -> str:
    """Write an amount in full, without an exponent, and without zeros that say nothing."""
    text = f"{amount:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"
