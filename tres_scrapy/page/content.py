"""What an item can hold beside the text of its page: HTML, Markdown, date and headings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tres_scrapy.page.text import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_HEADINGS: Final = 200
MAX_HEADING: Final = 500  # characters
HEADINGS: Final = "h1, h2, h3, h4, h5, h6"
PDF_DATE: Final = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")


def content_of_html(names: Iterable[str], html: str, url: str) -> dict[str, Any]:
    """Return these fields of a web page: `html`, `markdown`, `date`, `headings`."""
    make: dict[str, Callable[[], Any]] = {
        "html": lambda: html,
        "markdown": lambda: _markdown(html, url),
        "date": lambda: _date(html, url),
        "headings": lambda: _headings(html),
    }
    return {name: make[name]() for name in names}


def content_of_pdf(names: Iterable[str], said: dict[str, Any]) -> dict[str, Any]:
    """Return these fields of a PDF: a paragraph a page, no HTML and no headings."""
    date = PDF_DATE.match(said["date"])
    values: dict[str, Any] = {
        "html": "",
        "markdown": "\n\n".join(filter(None, said["pages"])),
        "date": "-".join(filter(None, date.groups())) if date else "",
        "headings": [],
    }
    return {name: values[name] for name in names}


def _markdown(html: str, url: str) -> str:
    from trafilatura import extract  # noqa: PLC0415 - of an extra, and slow to import

    try:
        said = extract(
            html, url=url, output_format="markdown", include_comments=False, include_links=True
        )
    except Exception:  # an untrusted page may raise any error
        return ""
    return said or ""


def _date(html: str, url: str) -> str:
    from trafilatura import extract_metadata  # noqa: PLC0415 - as above

    try:
        return extract_metadata(html, default_url=url).date or ""
    except Exception:  # as above
        return ""


def _headings(html: str) -> list[str]:
    texts = (" ".join(node.text(separator=" ").split()) for node in parse(html).css(HEADINGS))
    return [text[:MAX_HEADING] for text in texts if text][:MAX_HEADINGS]
