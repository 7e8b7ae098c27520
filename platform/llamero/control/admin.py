"""Nodes and their tokens in the admin: look, cordon, drain; issue, revoke."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.template.response import TemplateResponse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.debug import sensitive_variables
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from llamero.control.live_nodes import LiveNode, read_live_nodes
from llamero.control.models import Node, NodeToken, Scheduling
from llamero.control.node_form import NodeForm
from llamero.control.node_states import schedule_nodes
from llamero.control.node_tables import device_table, file_table, replica_table
from llamero.control.node_tokens import IssuedToken, issue_node_token, revoke_node_tokens
from models_registry.admin.labels import draw_label
from models_registry.sizes import filesizeformat

NOTHING = "-"
_NEW_LINE = mark_safe("<br>")
_STATE_COLOURS = {
    "Open": "success",
    "Cordoned": "warning",
    "Draining": "warning",
    "Drained": "info",
    "Stopping": "warning",
    "Silent": "danger",
    "Unknown": "",
}

_TABLES: tuple[tuple[str, Callable[[LiveNode], SafeString]], ...] = (
    ("Devices", device_table),
    ("Replicas", replica_table),
    ("Model files", file_table),
)


@admin.register(Node)
class NodeAdmin(ModelAdmin):  # type: ignore[misc]
    """Nodes enter by reporting; what an admin says of them stays until it is taken back."""

    form = NodeForm
    list_display = ("name", "state_label", "memory", "devices", "replicas")
    search_fields = ("name",)
    actions = ("cordon", "uncordon", "drain")
    readonly_fields = ("name", "state_label", "first_seen_at")
    change_form_outer_before_template = "control/node_top.html"
    list_before_template = "control/node_list_top.html"
    list_filter = ("scheduling",)
    list_per_page = 50
    show_full_result_count = False

    class Media:
        css = {"all": ("models_registry/pages.css",)}  # noqa: RUF012 - Django's own declaration

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Let no node be made by hand."""
        return False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Let who may change a node say what may run on it."""
        name, state, *rest = self.readonly_fields
        choice = ("allows",) if self.has_change_permission(request, obj) else ()
        return (name, state, *choice, *rest)

    def save_model(
        self, request: HttpRequest, obj: Node, form: "ModelForm[Node]", change: bool
    ) -> None:
        """Write what was chosen; the rest is the node's own."""
        scheduling = Scheduling(form.cleaned_data["allows"])
        schedule_nodes(nodes=Node.objects.filter(pk=obj.pk), scheduling=scheduling)

    @display(description="State")  # type: ignore[untyped-decorator]
    def state_label(self, node: Node) -> SafeString:
        """Show what may run on it, or that nobody hears it; alike in the list and on its page."""
        words = _describe_state(node)
        return draw_label(_STATE_COLOURS[words], words)

    @display(description="Memory")  # type: ignore[untyped-decorator]
    def memory(self, node: Node) -> str:
        """Show what is free of the host's memory."""
        live = _live(node)
        if live is None or not live.status.memory_total_bytes:
            return NOTHING
        status = live.status
        free, total = status.memory_free_bytes, status.memory_total_bytes
        return f"{filesizeformat(free)} of {filesizeformat(total)} free"

    @display(description="Devices")  # type: ignore[untyped-decorator]
    def devices(self, node: Node) -> SafeString | str:
        """List cores and GPUs."""
        live = _live(node)
        if live is None:
            return NOTHING
        num_cores = live.status.num_cores
        lines = [f"{num_cores} core{pluralize(num_cores)}"]
        for device in live.status.devices:
            if device.kind != "cpu":
                free, total = filesizeformat(device.free_bytes), filesizeformat(device.total_bytes)
                lines.append(f"{device.description or device.name}: {free} of {total} free")
        return format_html_join(_NEW_LINE, "{}", ((line,) for line in lines))

    @display(description="Replicas")  # type: ignore[untyped-decorator]
    def replicas(self, node: Node) -> str:
        """Count its replicas, and say how many serve."""
        live = _live(node)
        if live is None:
            return NOTHING
        num_ready = sum(one.state == "ready" for one in live.replicas)
        return f"{num_ready} ready of {len(live.replicas)}"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show above the form what the node has, runs and keeps, as it reports now."""
        node = self.get_object(request, object_id)
        live = _live(node) if node is not None else None
        tables = [] if live is None else [(name, make(live)) for name, make in _TABLES]
        context = {"node_tables": tables, **(extra_context or {})}
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    @action(description="Cordon: nothing new comes", permissions=["change"])  # type: ignore[untyped-decorator]
    def cordon(self, request: HttpRequest, nodes: QuerySet[Node]) -> None:
        """Leave what runs on the chosen nodes, and place nothing more on them."""
        self._schedule(request, nodes, Scheduling.CORDONED)

    @action(description="Uncordon: open for replicas", permissions=["change"])  # type: ignore[untyped-decorator]
    def uncordon(self, request: HttpRequest, nodes: QuerySet[Node]) -> None:
        """Open the chosen nodes."""
        self._schedule(request, nodes, Scheduling.OPEN)

    @action(description="Drain: replicas go elsewhere", permissions=["change"])  # type: ignore[untyped-decorator]
    def drain(self, request: HttpRequest, nodes: QuerySet[Node]) -> None:
        """Move what runs on the chosen nodes; each replica goes when another one serves."""
        self._schedule(request, nodes, Scheduling.DRAINING)

    def _schedule(
        self, request: HttpRequest, nodes: QuerySet[Node], scheduling: Scheduling
    ) -> None:
        word = scheduling.label.lower()
        chosen = list(nodes.exclude(scheduling=scheduling))
        count = schedule_nodes(nodes=nodes, scheduling=scheduling)
        for node in chosen:
            self.log_change(request, node, f"Now {word}.")
        words = f"{count} node{pluralize(count)} now {word}."
        self.message_user(request, words, messages.SUCCESS)


@admin.register(NodeToken)
class NodeTokenAdmin(ModelAdmin):  # type: ignore[misc]
    """A token is shown once, when it is made; then it can only be revoked."""

    list_display = ("name", "shown_prefix", "created_at", "last_used_at", "revoked_at")
    search_fields = ("name", "prefix")
    actions = ("revoke",)
    fields = ("name", "shown_prefix", "created_at", "last_used_at", "revoked_at")

    @display(description="Token")  # type: ignore[untyped-decorator]
    def shown_prefix(self, token: NodeToken) -> str:
        """Show the public part."""
        return token.shown_prefix

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Ask a new token for its name only."""
        return ("name",) if obj is None else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Fix everything once it is made."""
        return () if obj is None else self.fields

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Offer nothing to save: nothing can be changed."""
        none = dict.fromkeys(("show_save", "show_save_and_continue", "show_save_and_add_another"))
        context = {**none, **(extra_context or {})}
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    @sensitive_variables("issued")
    def save_model(
        self, request: HttpRequest, obj: NodeToken, form: "ModelForm[NodeToken]", change: bool
    ) -> None:
        """Issue a new token, keeping its text for this one response only."""
        if change:
            return
        issued = issue_node_token(name=obj.name)
        obj.__dict__.update(issued.token.__dict__)
        request.issued_token = issued  # type: ignore[attr-defined]

    @sensitive_variables("issued")
    def response_add(
        self, request: HttpRequest, obj: NodeToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the token on the page that answers the form: no redirect, so nothing stores it."""
        issued: IssuedToken = request.issued_token  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            "title": "Node token created",
            "opts": self.opts,
            "token": issued.token,
            "token_text": issued.secret_text,
        }
        response = TemplateResponse(request, "control/node_token_issued.html", context)
        response["Cache-Control"] = "no-store"
        return response

    @action(description="Revoke the selected tokens", permissions=["change"])  # type: ignore[untyped-decorator]
    def revoke(self, request: HttpRequest, tokens: QuerySet[NodeToken]) -> None:
        """End the chosen tokens for good."""
        chosen = list(tokens.filter(revoked_at__isnull=True))
        count = revoke_node_tokens(tokens=chosen)
        for token in chosen:
            self.log_change(request, token, "Revoked.")
        self.message_user(request, f"{count} token{pluralize(count)} revoked.", messages.SUCCESS)


def _describe_state(node: Node) -> str:
    live = read_live_nodes()
    found = live.nodes.get(node.name)
    if found is None:
        return "Silent" if live.is_known else "Unknown"
    if found.status.is_draining:
        return "Stopping"
    if node.scheduling == Scheduling.DRAINING and not found.replicas:
        return "Drained"
    return str(Scheduling(node.scheduling).label)


def _live(node: Node) -> LiveNode | None:
    return read_live_nodes().nodes.get(node.name)
