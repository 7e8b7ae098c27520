"""The admin's pages of usage: reports, rows, prices, and what may be seen by whom."""

import csv
import json
import re
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core import mail
from django.urls import reverse
from django.utils import timezone

from llamero.accounts.models import Team
from llamero.egress import FetchFailed
from llamero.usage import export, notifying
from llamero.usage.export import write_csv
from llamero.usage.models import AlertNotice, JobText, LedgerRow, ModelPrice, UsageAlert
from llamero.usage.texts import pack_text
from tests.llamero.usage.rows import NOON, make_row, save_rows
from tests.models_registry.factories import make_model

pytestmark = pytest.mark.django_db
REPORT = "/admin/usage/usagehour/"
ROWS = "/admin/usage/ledgerrow/"
PERIOD = {"begins": "2026-03-09", "ends": "2026-03-11"}


@pytest.fixture
def viewer(client: Any, django_user_model: Any) -> Any:
    """Somebody who may see reports and rows, and nothing else."""
    user = django_user_model.objects.create_user("viewer", password="x", is_staff=True)
    names = ("view_usagehour", "view_ledgerrow")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    return client


@async_to_sync
async def read_parts(response: Any) -> bytes:
    return b"".join([part async for part in response.streaming_content])


def read_stream(response: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(read_parts(response).decode(), newline="")))


def test_a_report_shows_totals_lines_and_charts(admin_client):
    model = make_model()
    save_rows(
        make_row(model_id=model.pk, cost=Decimal("0.25"), currency="EUR"),
        make_row(model_id=model.pk, finish_reason="error", ended_at=NOON + timedelta(days=1)),
        make_row(ended_at=NOON + timedelta(days=9)),
    )
    page = admin_client.get(REPORT, PERIOD | {"group": "model"}).content.decode()
    [chart] = re.findall(r'data-type="bar" data-value="([^"]*)"', page)
    sets = json.loads(chart.replace("&quot;", '"'))
    assert sets["labels"] == ["2026-03-09", "2026-03-10", "2026-03-11"]
    assert [one["data"] for one in sets["datasets"]] == [[0, 6, 6], [0, 4, 4], [0, 5, 5]]
    assert '<th scope="row">tiny</th>' in page
    assert "0.25 EUR" in page


def test_a_day_is_one_line_whatever_had_a_price(admin_client):
    save_rows(
        make_row(cost=Decimal("0.25"), currency="EUR"),
        make_row(cost=Decimal("0.5"), currency="USD"),
        make_row(),
        make_row(),
    )
    page = admin_client.get(REPORT, PERIOD | {"group": "day"}).content.decode()
    [line] = re.findall(r'<th scope="row">2026-03-10</th>(.*?)</tr>', page, re.DOTALL)
    assert re.findall(r'<td class="number">(\d+)</td>', line)[0] == "4"
    for words in ("0.25 EUR", "0.5 USD", "2 without a price"):
        assert words in line


def test_the_period_in_force_is_shown(admin_client):
    page = admin_client.get(REPORT).content.decode()
    today = timezone.now().date()
    assert f'value="{today}"' in page
    assert f'value="{today - timedelta(days=29)}"' in page


@pytest.mark.parametrize("number", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_report_takes_few_queries_however_much_was_used(
    admin_client, django_assert_max_num_queries, number
):
    save_rows(
        *(
            make_row(
                key_id=1 + one % 20,
                key_name=f"key {one % 20}",
                model_id=1 + one % 4,
                ended_at=NOON + timedelta(hours=one % 5),
            )
            for one in range(number)
        )
    )
    admin_client.get(REPORT)
    for group in ("day", "key", "model"):
        # The session, its user, the four lists of the form, the sums by day and by group, names.
        with django_assert_max_num_queries(12):
            page = admin_client.get(REPORT, PERIOD | {"group": group}).content.decode()
        assert f"<dd>{number * 10:,}<span>" in page
    with django_assert_max_num_queries(6):
        assert admin_client.get(ROWS).status_code == 200


def test_a_report_can_be_of_one_team(admin_client):
    team = Team.objects.create(name="red")
    save_rows(make_row(team_id=team.pk, num_prompt_tokens=777), make_row(num_prompt_tokens=1))
    page = admin_client.get(REPORT, PERIOD | {"team": team.pk}).content.decode()
    assert "<dd>777<span>" in page


@pytest.mark.parametrize(
    "query",
    [
        {"begins": "2026-03-12", "ends": "2026-03-11"},
        {"begins": "1000-01-01", "ends": "2026-03-11"},
        {"begins": "x"},
        {"group": "hour"},
        {"key": "999"},
        {"key": "1 or 1=1"},
    ],
)
def test_what_is_no_report_is_said(admin_client, query):
    page = admin_client.get(REPORT, query)
    assert page.status_code == 200
    assert "overview-tile" not in page.content.decode()
    assert admin_client.get(reverse("admin:usage_report_csv"), query).status_code == 400
    assert admin_client.get(reverse("admin:usage_rows_csv"), query).status_code == 400


def test_rows_come_as_csv_that_calculates_nothing(admin_client, monkeypatch):
    monkeypatch.setattr(export, "PAGE", 2)
    save_rows(
        make_row(key_name="=HYPERLINK(1)", cost=Decimal("0.0000000001"), currency="EUR"),
        *(make_row(ended_at=NOON + timedelta(minutes=one // 3)) for one in range(8)),
    )
    rows = read_stream(admin_client.get(reverse("admin:usage_rows_csv"), PERIOD))
    assert len(rows) == 9
    assert rows[0]["key_name"] == "'=HYPERLINK(1)"
    assert rows[0]["cost"] == "0.0000000001"
    assert len({row["job"] for row in rows}) == 9


def test_a_report_comes_as_csv(admin_client):
    save_rows(make_row(), make_row(key_id=0, key_name=""))
    url = reverse("admin:usage_report_csv")
    rows = read_stream(admin_client.get(url, PERIOD | {"group": "key"}))
    assert {(row["key"], row["key_id"], row["num_jobs"]) for row in rows} == {
        ("first", "1", "1"),
        ("", "0", "1"),
    }


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1"])
def test_a_text_that_begins_a_formula_is_quoted(text):
    [[cell]] = csv.reader(StringIO(write_csv([[text]]).decode(), newline=""))
    assert cell == f"'{text}"


def test_numbers_below_zero_stay_numbers():
    assert write_csv([[-1, "a=b", None]]) == b"-1,a=b,\r\n"


def test_those_without_the_right_see_nothing(client, django_user_model):
    user = django_user_model.objects.create_user("nobody", password="x", is_staff=True)
    client.force_login(user)
    for name in ("usage_usagehour_changelist", "usage_report_csv", "usage_rows_csv"):
        assert client.get(reverse(f"admin:{name}")).status_code == 403
    assert client.get(ROWS).status_code == 403


def test_rows_are_searched_filtered_and_never_changed(viewer):
    save_rows(make_row(job="wanted", request_id="req_1"), make_row(finish_reason="error"))
    row = LedgerRow.objects.get(job="wanted")
    for query in ({"q": "wanted"}, {"q": "req_1"}, {"finish_reason": "eos"}, {"model": "3"}):
        assert viewer.get(ROWS, query).status_code == 200
    assert "wanted" not in viewer.get(ROWS, {"finish_reason": "error"}).content.decode()
    assert viewer.get(f"{ROWS}{row.pk}/change/").status_code == 200
    assert viewer.post(f"{ROWS}{row.pk}/change/", {"key_name": "x"}).status_code == 403
    assert viewer.get(f"{ROWS}add/").status_code == 403
    assert viewer.post(f"{ROWS}{row.pk}/delete/").status_code == 403
    assert viewer.post(REPORT).status_code == 403


def test_kept_texts_are_for_those_who_may_read_them(viewer, admin_client):
    save_rows(make_row(job="told"))
    row = LedgerRow.objects.get()
    text = JobText.objects.create(
        row=row,
        prompt=pack_text("the <b>secret</b> question"),
        answer=pack_text("the answer"),
        expires_at=timezone.now() + timedelta(days=1),
    )
    url = f"{ROWS}{row.pk}/change/"
    assert "question" not in viewer.get(url).content.decode()
    page = admin_client.get(url).content.decode()
    assert "the &lt;b&gt;secret&lt;/b&gt; question" in page
    text.expires_at = timezone.now()
    text.save()
    assert "question" not in admin_client.get(url).content.decode()


def change_page(model: Any) -> str:
    return f"/admin/models_registry/model/{model.pk}/change/"


def price_fields(page: Any, *rows: dict[str, Any]) -> dict[str, Any]:
    """Give the form of a model's page as it is, with rows for its prices."""
    fields: dict[str, Any] = {}
    for form in (
        page.context["adminform"].form,
        *(one.formset for one in page.context["inline_admin_formsets"]),
    ):
        forms = [form] if not hasattr(form, "management_form") else [form.management_form]
        for one in forms:
            for bound in one:
                value = bound.value()
                if value is not None and value is not False:
                    fields[bound.html_name] = value
    fields["prices-TOTAL_FORMS"] = len(rows)
    for number, row in enumerate(rows):
        fields |= {f"prices-{number}-{name}": value for name, value in row.items()}
    return fields


def test_a_price_is_added_beside_its_model_and_then_stays(admin_client):
    model = make_model()
    new = {"input": "0.5", "output": "1.5", "currency": "EUR"}
    later = timezone.now() + timedelta(days=2)
    new |= {"valid_from_0": f"{later:%Y-%m-%d}", "valid_from_1": f"{later:%H:%M:%S}"}
    page = admin_client.get(change_page(model))
    answer = admin_client.post(change_page(model), price_fields(page, new))
    assert answer.status_code == 302, answer.context["errors"]
    price = ModelPrice.objects.get()
    assert (price.input, price.cached_input, price.output) == (Decimal("0.5"), None, Decimal("1.5"))
    ModelPrice.objects.update(valid_from=timezone.now() - timedelta(days=1))
    page = admin_client.get(change_page(model))
    forged = new | {"id": price.pk, "model": model.pk, "input": "0", "DELETE": "on"}
    fields = price_fields(page, forged) | {"prices-INITIAL_FORMS": 1}
    assert admin_client.post(change_page(model), fields).status_code == 302
    assert ModelPrice.objects.get().input == Decimal("0.5")


def test_a_price_for_the_past_is_refused(admin_client):
    model = make_model()
    new = {"input": "1", "output": "1", "currency": "EUR"}
    new |= {"valid_from_0": "2026-01-01", "valid_from_1": "00:00:00"}
    page = admin_client.get(change_page(model))
    answer = admin_client.post(change_page(model), price_fields(page, new))
    assert "billed already" in answer.content.decode()
    assert not ModelPrice.objects.exists()


def test_an_alert_is_made_by_its_page(admin_client):
    url = "/admin/usage/usagealert/add/"
    assert admin_client.get(url).status_code == 200
    fields = {"name": "spending", "enabled": "on", "shares": "50, 100 %"}
    answer = admin_client.post(url, fields | {"recipients": "a@b.example\n\nc@d.example\n"})
    assert answer.status_code == 302, answer.context["errors"]
    alert = UsageAlert.objects.get()
    assert (alert.shares, alert.recipients) == ([50, 100], ["a@b.example", "c@d.example"])
    page = admin_client.get(f"/admin/usage/usagealert/{alert.pk}/change/").content.decode()
    assert alert.webhook_secret.startswith("whsec_")
    assert alert.webhook_secret in page
    for broken in ({"shares": "half"}, {"recipients": "nobody"}, {"webhook_url": "http://x/"}):
        answer = admin_client.post(url, fields | {"recipients": "a@b.example"} | broken)
        assert answer.status_code == 200
    assert admin_client.get("/admin/usage/alertnotice/").status_code == 200


def test_who_makes_an_alert_is_told_that_no_mail_server_is_set_up(admin_client, settings):
    settings.EMAIL_IS_SET_UP = False
    url = "/admin/usage/usagealert/"
    assert "LLAMERO_EMAIL_URL" in admin_client.get(f"{url}add/").content.decode()
    fields = {"name": "a", "shares": "80", "recipients": "a@b.example"}
    answer = admin_client.post(f"{url}add/", fields, follow=True)
    # Once in the list, and once above it.
    assert answer.content.decode().count("LLAMERO_EMAIL_URL") == 2
    settings.EMAIL_IS_SET_UP = True
    assert "LLAMERO_EMAIL_URL" not in admin_client.get(url).content.decode()


def test_an_alert_can_be_tried(viewer, admin_client, settings, monkeypatch):
    settings.EMAIL_IS_SET_UP = True
    told = []
    monkeypatch.setattr(notifying, "post_document", lambda *call: told.append(call))
    alert = UsageAlert.objects.create(
        name="a\nb", recipients=["a@b.example"], webhook_url="https://hooks.example/s3cr3t"
    )
    url = f"/admin/usage/usagealert/{alert.pk}/"
    assert f'action="{url}step/try/"' in admin_client.get(f"{url}change/").content.decode()
    asked = admin_client.post(f"{url}step/try/").content.decode()
    assert "a@b.example" in asked
    assert "hooks.example" in asked
    assert (told, mail.outbox) == ([], [])
    answer = admin_client.post(f"{url}step/try/", {"confirmed": "1"}, follow=True)
    assert "All were told" in answer.content.decode()
    [(address, body, headers)] = told
    assert (address, json.loads(body)["type"]) == (alert.webhook_url, "usage.alert.trial")
    assert headers["webhook-signature"].startswith("v1,")
    assert mail.outbox[0].subject == "A trial of the alert a b"
    assert not AlertNotice.objects.exists()
    assert viewer.post(f"{url}step/try/", {"confirmed": "1"}).status_code == 403


def test_who_tries_an_alert_is_told_what_failed(admin_client, settings, monkeypatch):
    settings.EMAIL_IS_SET_UP = False

    def refuse(*_):
        raise FetchFailed("hooks.example answered 404")

    monkeypatch.setattr(notifying, "post_document", refuse)
    alert = UsageAlert.objects.create(
        name="a", recipients=["a@b.example"], webhook_url="https://hooks.example/"
    )
    url = f"/admin/usage/usagealert/{alert.pk}/step/try/"
    page = admin_client.post(url, {"confirmed": "1"}, follow=True).content.decode()
    assert "E-mail: No mail server is set up" in page
    assert "Webhook: hooks.example answered 404" in page


def test_secrets_of_an_alert_are_for_those_who_may_change_it(viewer, admin_client):
    alert = UsageAlert.objects.create(name="a", webhook_url="https://hooks.example/T0/s3cr3t")
    viewing = Permission.objects.get(codename="view_usagealert")
    get_user_model().objects.get(username="viewer").user_permissions.add(viewing)
    for address in ("", f"{alert.pk}/change/"):
        page = viewer.get(f"/admin/usage/usagealert/{address}").content.decode()
        assert "hooks.example" in page
        assert "s3cr3t" not in page
        assert alert.webhook_secret not in page
    for name in ("webhook_url", "webhook_secret"):
        answer = viewer.get(f"/admin/usage/usagealert/?{name}__startswith=whsec_")
        assert answer.status_code in (302, 400)
    assert (
        "s3cr3t" in admin_client.get(f"/admin/usage/usagealert/{alert.pk}/change/").content.decode()
    )
