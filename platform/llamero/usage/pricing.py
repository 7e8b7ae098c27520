"""What tokens cost: exact to the last place, by the price that is valid when a job ends."""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.utils import timezone

from llamero.usage.models import ModelPrice
from llamero.usage.money import TOKENS_OF_A_PRICE

TINY = Decimal(10**12)


class TokenPrices(NamedTuple):
    """What a token costs in millionths of a millionth: of a prompt, a cached one, of an answer."""

    input: int
    cached: int
    output: int
    currency: str


def find_cost(price: ModelPrice, num_prompt: int, num_cached: int, num_completion: int) -> Decimal:
    """Give what a job costs; cached tokens are some of the prompt's."""
    amount: Decimal = (
        (num_prompt - num_cached) * price.input
        + num_cached * price.effective_cached_input
        + num_completion * price.output
    )
    return amount / TOKENS_OF_A_PRICE


class PriceList:
    """The prices of some models over all time: one query."""

    def __init__(self, model_ids: Iterable[int]) -> None:
        self._prices: dict[int, list[ModelPrice]] = {}
        found = ModelPrice.objects.filter(model__in=set(model_ids)).order_by("valid_from")
        for price in found:
            self._prices.setdefault(price.model_id, []).append(price)

    def find(self, model_id: int, moment: datetime) -> ModelPrice | None:
        """Give the price that is valid at a moment."""
        prices = self._prices.get(model_id, [])
        place = bisect_right(prices, moment, key=lambda price: price.valid_from)
        return prices[place - 1] if place else None


def find_token_prices(model_id: int) -> TokenPrices | None:
    """Give what a token of a model costs now; None where it has no price."""
    price = PriceList([model_id]).find(model_id, timezone.now())
    if price is None:
        return None
    amounts = (price.input, price.effective_cached_input, price.output)
    tiny = [int(one * TINY / TOKENS_OF_A_PRICE) for one in amounts]
    return TokenPrices(tiny[0], tiny[1], tiny[2], price.currency)
