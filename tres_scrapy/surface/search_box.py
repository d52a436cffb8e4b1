"""Finds the search box of a site: JSON-LD, OpenSearch or a form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus, urlencode, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tres_scrapy.page.text import parse
from tres_scrapy.url.canonical import canonicalise

GET, POST = "GET", "POST"
MOST_HTML: Final = 500_000  # characters of a page
NAMES: Final = frozenset(
    {"q", "query", "s", "search", "keyword", "keywords", "kw", "term", "terms", "text", "words"}
)
FORBIDDEN: Final = "input[type=password], input[type=email], input[type=tel], input[type=file]"
BOX: Final = "input:not([type]), input[type=text], input[type=search]"
PARAMETER: Final = re.compile(r"\{([^{}?]+)\}")
OPTIONAL: Final = re.compile(r"\{[^{}]*\?\}")
OPENSEARCH: Final = "link[rel~=search i][type='application/opensearchdescription+xml' i][href]"


class Interface(NamedTuple):
    """A search box; {query} in `template` or `body` stands for the escaped words.

    `body` is "" unless `method` is POST.
    """

    method: str
    template: str
    body: str
    sign: str  # how it was found: json-ld, opensearch or form

    def url(self, words: str) -> str:
        """Return the URL of a query."""
        return self.template.replace("{query}", quote_plus(words))

    def payload(self, words: str) -> str:
        """Return the body of a query, "" with GET."""
        return self.body.replace("{query}", quote_plus(words))

    @property
    def action(self) -> str:
        """The host and path of the search box, without the words."""
        parts = urlsplit(self.template)
        return f"{parts.netloc}{parts.path.partition('{query}')[0]}"


def find_interface(html: str, url: str) -> Interface | None:
    """Return the search box of a page, if possible one that is asked by GET."""
    tree = parse(html[:MOST_HTML])
    found = [*_described(tree, url), *_forms(tree, url)]
    return min(found, key=lambda interface: interface.method != GET, default=None)


def find_description(html: str, url: str) -> str | None:
    """Return the URL of the OpenSearch description that a page links to."""
    tree = parse(html[:MOST_HTML])
    link = tree.css_first(OPENSEARCH)
    return canonicalise(urljoin(url, link.attributes["href"] or "")) if link is not None else None


def read_description(xml: str, url: str) -> Interface | None:
    """Return the search box of an OpenSearch description, None if it has none."""
    tree = parse(xml[:MOST_HTML])
    for node in tree.css("url[template]"):
        attributes = node.attributes
        if (attributes.get("type") or "").lower() != "text/html":
            continue
        template = OPTIONAL.sub("", attributes["template"] or "")
        if (attributes.get("method") or GET).upper() == GET:
            return _of_template(template, "searchTerms", url, "opensearch")
    return None


def _described(tree: LexborHTMLParser, url: str) -> Iterator[Interface]:
    for script in tree.css("script[type='application/ld+json' i]"):
        try:
            data = json.loads(script.text())
        except (ValueError, RecursionError):  # not valid JSON
            continue
        for template, name in _actions(data):
            if (interface := _of_template(template, name, url, "json-ld")) is not None:
                yield interface


def _actions(data: Any) -> Iterator[tuple[str, str]]:
    """Yield the URL template and the parameter of each SearchAction at any depth."""
    waiting = [data]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        if not isinstance(node, dict):
            continue
        waiting.extend(node.values())
        if node.get("@type") != "SearchAction":
            continue
        target = node.get("target")
        for one in target if isinstance(target, list) else [target]:
            template = one.get("urlTemplate") if isinstance(one, dict) else one
            name = re.search(r"name=([\w-]+)", str(node.get("query-input", "")))
            if isinstance(template, str):
                yield template, name[1] if name else "search_term_string"


def _of_template(template: str, name: str, url: str, sign: str) -> Interface | None:
    """Return the search box of a URL template, None unless `name` is its only parameter."""
    marked = template.replace(f"{{{name}}}", "TRESQUERY")
    if marked == template or PARAMETER.search(marked):
        return None
    absolute = canonicalise(urljoin(url, marked))
    if absolute is None or absolute.count("TRESQUERY") != 1:
        return None
    return Interface(GET, absolute.replace("TRESQUERY", "{query}"), "", sign)


def _forms(tree: LexborHTMLParser, url: str) -> list[Interface]:
    """Return the forms that look like a search box, most likely first."""
    scored = []
    for form in tree.css("form"):
        boxes = [box for box in form.css(BOX) if (box.attributes.get("name") or "").strip()]
        if len(boxes) != 1 or form.css_first(FORBIDDEN) is not None:
            continue
        likely = _likeness(form, boxes[0])
        if likely and (interface := _of_form(form, boxes[0], url)) is not None:
            scored.append((likely, interface))
    return [interface for _, interface in sorted(scored, key=lambda one: -one[0])]


def _likeness(form: LexborNode, box: LexborNode) -> int:
    """Return how many signs of a search form there are."""
    name = (box.attributes.get("name") or "").lower()
    told = " ".join(str(form.attributes.get(n) or "") for n in ("role", "class", "id", "action"))
    return (
        ("search" in (form.attributes.get("role") or "").lower())
        + (box.attributes.get("type") == "search")
        + (name in NAMES)
        + ("search" in told.lower())
    )


def _of_form(form: LexborNode, box: LexborNode, url: str) -> Interface | None:
    method = (form.attributes.get("method") or GET).upper()
    action = canonicalise(urljoin(url, form.attributes.get("action") or ""))
    if action is None or method not in {GET, POST}:
        return None
    fields = urlencode([*_fields(form)])
    query = f"{quote_plus(box.attributes['name'] or '')}={{query}}"
    sent = f"{fields}&{query}" if fields else query
    if method == POST:
        return Interface(POST, action, sent, "form")
    return Interface(GET, f"{action.partition('?')[0]}?{sent}", "", "form")


def _fields(form: LexborNode) -> Iterator[tuple[str, str]]:
    """Yield the other fields that a form sends: hidden, checked and selected ones."""
    for node in form.css("input[name], select[name]"):
        name, kind = node.attributes["name"] or "", (node.attributes.get("type") or "").lower()
        if node.tag == "select":
            chosen = node.css_first("option[selected]") or node.css_first("option")
            if chosen is not None:
                yield name, chosen.attributes.get("value") or chosen.text(strip=True)
        elif kind == "hidden" or (kind in {"checkbox", "radio"} and "checked" in node.attributes):
            yield name, node.attributes.get("value") or ""
