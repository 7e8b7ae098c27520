"""Markdown that people wrote, as HTML that can do no harm. Pure.

Raw HTML in it stays text. What the renderer makes of the rest is cleaned all the same: a fault in
one of the two is then no hole. Links lead to http and https alone, and pictures are left out, since
they would tell strangers who looks at a page.
"""

from functools import lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

MAX_CHARS = 20_000
_TAGS = frozenset(
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead "
    "tr ul".split()
)
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_renderer = MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
_renderer.enable(["table", "strikethrough"]).disable("image")


@lru_cache(maxsize=256)
def render_markdown(text: str) -> SafeString:
    """Give Markdown as safe HTML; what is too long is cut."""
    cut = text[:MAX_CHARS] + ("\n\n…" if len(text) > MAX_CHARS else "")
    html = nh3.clean(
        _renderer.render(cut.replace("\x00", "")),
        tags=set(_TAGS),
        attributes=dict(_ATTRIBUTES),
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)
