"""What is left of budgets is shown where one looks for it."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from llamero.accounts.models import ApiKey, Team
from llamero.limits.models import LimitSet
from tests.llamero.usage.rows import make_row, save_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def spent(key: ApiKey, ada: User, team: Team) -> LimitSet:
    """A key with two budgets, of which 15 tokens and 0.5 of money are used."""
    now = timezone.now()
    row = make_row(key_id=key.pk, user_id=ada.pk, team_id=team.pk, ended_at=now)
    row.cost, row.currency = Decimal("0.5"), "EUR"
    save_rows(row)
    LimitSet.objects.create(team=team, tokens_per_day=10)
    LimitSet.objects.create(team=Team.objects.create(name="Other"), tokens_per_day=777)
    return LimitSet.objects.create(key=key, tokens_per_month=60_000, money_per_month=2)


def test_the_page_of_a_key_says_what_is_left(client: Client, key: ApiKey, spent: LimitSet) -> None:
    client.force_login(User.objects.create_superuser("root"))
    pages = {
        "accounts_apikey": key.pk,
        "limits_limitset": spent.pk,
    }
    for name, number in pages.items():
        page = client.get(reverse(f"admin:{name}_change", args=[number])).text
        assert "tokens of this month: 59,985 of 60,000 left (0 % used), until 2" in page
        assert "money of this month: 1.5 of 2 left (25 % used), until 2" in page
    assert "No budget is set" in client.get(reverse("admin:limits_limitset_add")).text


def test_people_see_what_is_left_to_them(client: Client, ada: User, spent: LimitSet) -> None:
    client.force_login(ada)
    page = client.get("/account").text

    assert "59,985 of 60,000 left" in page
    # The last request took more than there was.
    assert "0 of 10 left" in page
    assert "150 % used" in page
    assert "777" not in page


def test_who_has_no_budget_is_shown_none(client: Client, ada: User) -> None:
    client.force_login(ada)

    assert "What is left to use" not in client.get("/account").text
