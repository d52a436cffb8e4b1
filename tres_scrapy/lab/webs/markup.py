"""Synthetic pages as HTML: boilerplate, text and links, in the encoding of their site."""

from __future__ import annotations

from html import escape

import numpy as np

from tres_scrapy.lab.webs.address import Addresses
from tres_scrapy.lab.webs.noise import below, mix, unit
from tres_scrapy.lab.webs.prose import PARAGRAPH, Prose
from tres_scrapy.lab.webs.site import SITES
from tres_scrapy.lab.webs.synthetic_page import (
    STATICS,
    LinkChooser,
    SyntheticPages,
    Targets,
    Traits,
)

# (codec, charset in the header, charset in the page); one of them is wrong on purpose.
ENCODINGS = (
    ("utf-8", "utf-8", "utf-8"),
    ("latin-1", "iso-8859-1", ""),
    ("cp1252", "", "windows-1252"),
    ("utf-8", "iso-8859-1", "utf-8"),
    ("ascii", "", ""),
)
ENCODING_SHARES = np.cumsum([0.9, 0.03, 0.03, 0.02])
CALENDAR_SHARE, SESSION_SHARE = 0.01, 0.006  # shares of sites with such a trap
CALENDAR, SESSION = 1, 2
ALIASES, ALIAS_SHARE = ("ref=home", "print=1"), 0.03
DETOUR_SHARE = 0.03  # links that lead through a chain of redirects
THIN = 40  # words of a static page


class Documents:
    """Writes the HTML of pages."""

    def __init__(
        self, pages: SyntheticPages, addresses: Addresses, links: LinkChooser, prose: Prose
    ) -> None:
        self.pages, self.sites, self.key = pages, pages.sites, pages.key
        self.addresses, self.links, self.prose = addresses, links, prose
        share = unit(mix(self.key, 52, np.arange(SITES)))
        traps = [share < CALENDAR_SHARE, share < CALENDAR_SHARE + SESSION_SHARE]
        self.traps = np.select(traps, [CALENDAR, SESSION])

    def page(self, page: Traits, session: str) -> str:
        """Return the HTML of a page; links within a site with sessions carry the session."""
        site, number, size = (
            int(page.site[0]),
            int(page.number[0]),
            int(self.sites.size[page.site[0]]),
        )
        targets = self.links.targets(page)
        links = self._links(site, number, targets, session)
        static = number >= size
        title = STATICS[number - size].title() if static else self.prose.headings(page)[0]
        text = self.prose.sentences(page, THIN if static else self.prose.length(page))
        text = text if static else [f"{title}.", *text]
        advert = len(links) - targets.adverts
        body = _body(text, links[: targets.inside], links[targets.inside : advert])
        return self._frame(site, title, body, links[advert:], session)

    def calendar(self, site: int, year: int, month: int) -> str:
        """Return a page of a calendar that has no end."""
        following, previous = year * 12 + month, year * 12 + month - 2
        cells = [f'<a href="/calendar/{year}/{month}/{day}">{day}</a>' for day in range(1, 29)]
        steps = [f"/calendar/{m // 12}/{m % 12 + 1}" for m in (previous, following)]
        body = f'<a href="{steps[0]}">«</a> {" ".join(cells)} <a href="{steps[1]}">next »</a>'
        return self._frame(site, f"Calendar {month}/{year}", body, [], "")

    def encode(self, site: int, html: str) -> tuple[bytes, tuple[tuple[str, str], ...]]:
        """Return the page's bytes and its headers in the encoding of the site."""
        share = unit(mix(self.key, 50, site))[0]
        codec, header, meta = ENCODINGS[int(np.searchsorted(ENCODING_SHARES, share, side="right"))]
        html = html.replace("<head>", f'<head><meta charset="{meta}">' if meta else "<head>", 1)
        kind = f"text/html; charset={header}" if header else "text/html"
        return html.encode(codec, "xmlcharrefreplace"), (("Content-Type", kind),)

    def session(self, site: int, *parts: int) -> str:
        """Return a new session id on a site that gives one to every page, else ""."""
        return f"sid={mix(self.key, 51, site, *parts)[0]:x}" if self.trap(site) == SESSION else ""

    def trap(self, site: int) -> int:
        """Return the trap of a site, 0 if it has none."""
        return int(self.traps[site])

    def _links(self, site: int, number: int, targets: Targets, session: str) -> list[str]:
        """Return the links as HTML, in the order of the targets."""
        count = len(targets.site)
        noise = mix(self.key, 53, site, number, np.arange(count))
        traits = self.pages.traits(targets.site, targets.number)
        urls, anchors = self.addresses.urls(traits), self.prose.anchors(traits, noise)
        twist = unit(mix(noise, 5)).tolist()
        start = len(self.addresses.host(site)) + len("http://")
        rows = []
        for place, (url, anchor, share) in enumerate(zip(urls, anchors, twist, strict=True)):
            inside = place < targets.inside
            query = session if inside and session else _alias(share)
            target = (
                detour(url, share) if not query else f"{url}{'&' if '?' in url else '?'}{query}"
            )
            label = escape(anchor) if anchor else '<img src="/img/button.gif" alt="">'
            rows.append(f'<a href="{escape(target[start:] if inside else target)}">{label}</a>')
        return rows

    def _frame(self, site: int, title: str, body: str, adverts: list[str], session: str) -> str:
        query = f"?{session}" if session else ""
        folders = [self.addresses.folder(site, j) for j in range(int(self.sites.sections[site]))]
        menu = [("/", "Home"), *((f"/{f}/", f.title()) for f in folders)]
        foot = [(f"/{name}", name.title()) for name in STATICS]
        if self.trap(site) == CALENDAR:
            menu.append(
                (f"/calendar/2024/{1 + int(below(mix(self.key, 54, site), 12)[0])}", "Calendar")
            )
        navigation = " ".join(f'<a href="{url}{query}">{name}</a>' for url, name in menu)
        footer = " ".join(f'<a href="{url}">{name}</a>' for url, name in foot)
        return (
            f"<!DOCTYPE html><html><head><title>{escape(title)}</title></head><body>"
            f"<nav>{navigation}</nav><main><h1>{escape(title)}</h1>{body}</main>"
            f"<aside>{' '.join(adverts)}</aside><footer>{footer} © 2024 “{folders[0]}”</footer>"
            "</body></html>"
        )


def detour(url: str, share: float) -> str:
    """Return the URL or, for a small share of links, a URL that redirects to it."""
    if share < 1 - DETOUR_SHARE or url.count("/") < 3:
        return url
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}/go/{1 + int((1 - share) / DETOUR_SHARE * 3)}/{path}"


def _alias(share: float) -> str:
    return ALIASES[share < ALIAS_SHARE / 2] if share < ALIAS_SHARE else ""


def _body(text: list[str], inside: list[str], outward: list[str]) -> str:
    """Return paragraphs with the outward links inside them, then the site's links as a list."""
    paragraphs = [text[i : i + PARAGRAPH] for i in range(0, len(text), PARAGRAPH)]
    each = -(-len(outward) // len(paragraphs))
    blocks = []
    for i, sentences in enumerate(paragraphs):
        links = outward[i * each : (i + 1) * each]
        mixed = [part for pair in zip(sentences, links, strict=False) for part in pair]
        rest = sentences[len(links) :] + links[len(sentences) :]
        blocks.append(f"<p>{' '.join(mixed + rest)}</p>")
    items = "".join(f"<li>{link}</li>" for link in inside)
    return f"{''.join(blocks)}<h2>See also</h2><ul>{items}</ul>"
