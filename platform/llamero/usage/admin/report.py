"""Usage reports: charts, a table, and both as CSV, in place of a list of sums."""

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import path

from llamero.read_only_admin import ReadOnlyAdmin
from llamero.usage.admin.report_form import ReportForm
from llamero.usage.export import export_report, export_rows
from llamero.usage.models import UsageHour
from llamero.usage.reports import Group, Period, ReportLine, read_report, total_of
from llamero.usage.shown import show_lines

MAX_LINES = 500
# As the theme's charts and their legends have them.
_TOKEN_COLOURS = {
    "Prompt tokens": "var(--color-primary-400)",
    "Cached prompt tokens": "var(--color-primary-200)",
    "Answer tokens": "var(--color-primary-700)",
}
_JOB_COLOURS = {"Jobs": "var(--color-primary-600)", "Failed": "var(--color-red-600)"}


@admin.register(UsageHour)
class UsageReportAdmin(ReadOnlyAdmin):
    """One page, and two downloads; nothing can be changed."""

    def get_urls(self) -> list[Any]:
        """Add the downloads."""
        wrap = self.admin_site.admin_view
        return [
            path("report.csv", wrap(self.give_report), name="usage_report_csv"),
            path("rows.csv", wrap(self.give_rows), name="usage_rows_csv"),
            path("", wrap(self.changelist_view), name="usage_usagehour_changelist"),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the report that the query asks for."""
        self._require(request, "usage.view_usagehour")
        form = ReportForm(request.GET or {}, user=request.user)
        context = {**self.admin_site.each_context(request), "title": "Usage", "form": form}
        if form.is_valid():
            # What was left empty is shown as it is in force.
            context["form"] = ReportForm(initial=form.cleaned_data, user=request.user)
            chosen = {name: request.GET[name] for name in form.fields if request.GET.get(name)}
            context |= _describe(form) | {
                "query": urlencode(chosen),
                "may_see_rows": request.user.has_perm("usage.view_ledgerrow"),
            }
        return TemplateResponse(request, "usage/report.html", context)

    def give_report(self, request: HttpRequest) -> HttpResponseBase:
        """Give the lines of a report."""
        self._require(request, "usage.view_usagehour")
        form = ReportForm(request.GET or {}, user=request.user)
        if not form.is_valid():
            return _refuse(form)
        group = form.group_chosen
        return export_report(read_report(form.period, [group], form.subject), group)

    def give_rows(self, request: HttpRequest) -> HttpResponseBase:
        """Give the rows of the ledger behind a report."""
        self._require(request, "usage.view_ledgerrow")
        form = ReportForm(request.GET or {}, user=request.user)
        return export_rows(form.period, form.subject) if form.is_valid() else _refuse(form)

    def _require(self, request: HttpRequest, permission: str) -> None:
        if request.method not in ("GET", "HEAD") or not request.user.has_perm(permission):
            raise PermissionDenied


def _refuse(form: ReportForm) -> HttpResponse:
    text = " ".join(str(error) for errors in form.errors.values() for error in errors)
    return HttpResponse(text, status=400, content_type="text/plain; charset=utf-8")


def _describe(form: ReportForm) -> dict[str, Any]:
    period, group, subject = form.period, form.group_chosen, form.subject
    by_day = read_report(period, [Group.DAY], subject)
    shown = show_lines(by_day if group is Group.DAY else read_report(period, [group], subject))
    return {
        "period": period,
        "last_day": period.ends - timedelta(days=1),
        "group": group,
        "total": show_lines(total_of(by_day))[0],
        "lines": [(_heading(line.sums, group), line) for line in shown[:MAX_LINES]],
        "num_more": max(0, len(shown) - MAX_LINES),
        "token_chart": json.dumps(_token_chart(period, by_day)),
        "token_colours": _TOKEN_COLOURS,
        "job_chart": json.dumps(_job_chart(period, by_day)),
        "job_colours": _JOB_COLOURS,
    }


def _heading(line: ReportLine, group: Group) -> str:
    if line.time is not None:
        return f"{line.time:%Y-%m-%d}"
    return line.names[group] or "none"


def _token_chart(period: Period, lines: list[ReportLine]) -> dict[str, Any]:
    days = _days(period)
    values: dict[str, dict[str, int]] = {name: dict.fromkeys(days, 0) for name in _TOKEN_COLOURS}
    for line in lines:
        day = _heading(line, Group.DAY)
        values["Prompt tokens"][day] += line.num_prompt_tokens - line.num_cached_tokens
        values["Cached prompt tokens"][day] += line.num_cached_tokens
        values["Answer tokens"][day] += line.num_completion_tokens
    return {
        "labels": days,
        "datasets": [
            {
                "label": name,
                "data": list(values[name].values()),
                "backgroundColor": colour,
                "stack": "tokens",
                # The theme draws no axis unless it is asked to.
                "displayYAxis": True,
            }
            for name, colour in _TOKEN_COLOURS.items()
        ],
    }


def _job_chart(period: Period, lines: list[ReportLine]) -> dict[str, Any]:
    days = _days(period)
    values: dict[str, dict[str, int]] = {name: dict.fromkeys(days, 0) for name in _JOB_COLOURS}
    for line in lines:
        values["Jobs"][_heading(line, Group.DAY)] += line.num_jobs
        values["Failed"][_heading(line, Group.DAY)] += line.num_failed
    return {
        "labels": days,
        "datasets": [
            {
                "label": name,
                "data": list(values[name].values()),
                "borderColor": colour,
                "displayYAxis": True,
            }
            for name, colour in _JOB_COLOURS.items()
        ],
    }


def _days(period: Period) -> list[str]:
    num_days = period.num_hours // 24
    return [f"{period.begins + timedelta(days=number):%Y-%m-%d}" for number in range(num_days)]
