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
_TEXT_TAGS = {"a", "blockquote", "br", "code", "del", "em", "hr", "p", "pre", "s", "strong"}
_HEADINGS = {f"h{level}" for level in range(1, 7)}
_LIST_TAGS = {"li", "ol", "ul"}
_TABLE_TAGS = {"table", "tbody", "td", "th", "thead", "tr"}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_renderer = MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
_renderer.enable(["table", "strikethrough"]).disable("image")


@lru_cache(maxsize=256)
def render_markdown(text: str) -> SafeString:
    """Give Markdown as safe HTML; what is too long is cut."""
    cut = text[:MAX_CHARS] + ("\n\n…" if len(text) > MAX_CHARS else "")
    html = nh3.clean(
        _renderer.render(cut.replace("\x00", "")),
        tags=_TEXT_TAGS | _HEADINGS | _LIST_TAGS | _TABLE_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)
