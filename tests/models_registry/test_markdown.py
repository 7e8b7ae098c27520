"""Descriptions are rendered, and do no harm whatever they hold."""

from html.parser import HTMLParser

import pytest

from models_registry.markdown import MAX_CHARS, render_markdown

HARMLESS = {"p", "a", "br", "blockquote", "code", "pre"}


class Tags(HTMLParser):
    """Notes what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.names.add(tag)
        self.attributes += attrs


def test_what_people_write_is_rendered() -> None:
    html = render_markdown(
        "# Title\n\n- *one*\n- **two** `x<y`\n\n|a|b|\n|-|-|\n|1|2|\n\n[site](https://example.org)"
    )

    for part in ("<h1>Title</h1>", "<em>one</em>", "<td>1</td>", "<code>x&lt;y</code>"):
        assert part in html
    assert '<a href="https://example.org" rel="noopener noreferrer nofollow">site</a>' in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](java\nscript:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](data:text/html,<script>alert(1)</script>)",
        "[a](vbscript:alert(1))",
        "![a](https://evil.example/pixel.png)",
        "![a](javascript:alert(1))",
        "<javascript:alert(1)>",
        '[a](https://x "\\" onmouseover=alert(1) x=\\"")',
        '```x onload=alert(1)"><script>\n</script>\n```',
        "<svg/onload=alert(1)>",
        "[a]: javascript:alert(1)\n\n[a]",
        "<a href='javascript:alert(1)'>x</a>",
        "<style>*{display:none}</style>",
        "<iframe src=//evil.example>",
    ],
)
def test_nothing_that_acts_gets_through(text: str) -> None:
    found = Tags()
    found.feed(render_markdown(text))

    assert found.names <= HARMLESS
    assert all(name in ("href", "title", "rel") for name, _ in found.attributes)
    assert all(
        (value or "").startswith("https://") for name, value in found.attributes if name == "href"
    )


def test_what_is_long_or_deep_is_bounded() -> None:
    assert len(render_markdown("a" * (2 * MAX_CHARS))) < MAX_CHARS + 100
    assert render_markdown("> " * 5000 + "deep")
    assert render_markdown("[" * 5000)
    assert render_markdown("*a_" * 5000)
