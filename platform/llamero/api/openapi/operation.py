"""What is said of one route."""

from dataclasses import dataclass

from drf_spectacular.utils import OpenApiParameter

from llamero.api.openapi.shapes import COUNT, TEXT, Schema
from llamero.api.openapi.tags import Tag


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one view.

    ``answer`` and ``event`` describe a whole answer, and each event of a stream.
    ``media_type`` is of an answer that is no JSON. With neither the answer is empty. ``form``
    is a body that is a form. ``error`` is what failures look like where the route's dialect does
    not say it.
    """

    summary: str
    tag: Tag
    answer: Schema | None = None
    event: Schema | None = None
    media_type: str = ""
    body: Schema | None = None
    form: Schema | None = None
    error: Schema | None = None
    parameters: tuple[OpenApiParameter, ...] = ()


def query(name: str, description: str, schema: Schema = TEXT) -> OpenApiParameter:
    """Describe a field of the query."""
    return OpenApiParameter(name, schema, OpenApiParameter.QUERY, description=description)


def header(name: str, description: str, schema: Schema = TEXT) -> OpenApiParameter:
    """Describe a header."""
    return OpenApiParameter(name, schema, OpenApiParameter.HEADER, description=description)


def paged(most: int) -> tuple[OpenApiParameter, ...]:
    """Describe the fields by which a list is read page by page."""
    return (
        query("limit", f"How many, up to {most}.", COUNT),
        query("after", "Those after this one."),
        query("order", "`desc`, the newest first, or `asc`."),
    )
