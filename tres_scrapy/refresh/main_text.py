"""The main text of a page, which decides whether the page has changed."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.copies import MAX_DIFFERENCE, SKETCH, fingerprint
from tres_scrapy.page.kind import is_soft_404
from tres_scrapy.page.pdf_page import PDFS, read_document
from tres_scrapy.page.text import BOILERPLATE, LIMITS, MIN_TEXT_WORDS, Page, read_page

# Elements whose class or id has one of these names differ at every fetch.
NOISE: Final = ("advert", "banner", "sponsor", "promo", "cookie", "consent", "newsletter", "share")
ADVERTS: Final = ", ".join(
    [*(f'[class*="{name}" i], [id^="{name}" i]' for name in NOISE), "[class~=ad]", "[class~=ads]"]
)
SAME, MINOR, OTHER = "unchanged", "minor", "changed"
# The crawl reads a page with its adverts: such a copy may differ in more lanes.
LOOSE: Final = 24


@dataclass(frozen=True, slots=True)
class Copy:
    """A hash and a sketch of the text of a page, kept to compare later versions with.

    The hash shows whether the text is exactly the same, the sketch how much it differs. `loose`:
    the text was read by the crawl, not by this module.
    """

    hash: bytes
    sketch: bytes
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The title, text and links of the main part of a page."""

    title: str
    text: str
    links: tuple[tuple[str, str], ...]
    copy: Copy
    missing: bool = False  # a "not found" page with status 200

    @property
    def thin(self) -> bool:
        """Whether it has so few words that the boilerplate read by a crawl may outweigh them."""
        return len(self.text.split()) <= 2 * MIN_TEXT_WORDS


def read(html: str, url: str, limits: ReadingLimits = LIMITS) -> Reading:
    """Read a page without navigation, adverts and other boilerplate."""
    tree = LexborHTMLParser(html[: limits.html].encode("utf-8", "replace"))
    for node in tree.css(f"{BOILERPLATE}, {ADVERTS}"):
        if node.tag not in {"html", "body", "main", "article"}:
            node.decompose()
    page = read_page(tree.html or "", url, limits, language=False, least_words=0)
    copy = copy_of(page.title, page.text)
    return Reading(page.title, page.text, page.links, copy, is_soft_404(page))


def read_pdf(body: bytes, url: str, limits: ReadingLimits = LIMITS) -> Reading:
    """Read a PDF as the crawl does; raise DocumentError if it cannot be read."""
    page = read_document(PDFS(body), url, limits)
    return Reading(page.title, page.text, page.links, copy_of(page.title, page.text))


def copy_of(title: str, text: str, *, loose: bool = False) -> Copy:
    """Return the copy of a text."""
    whole = " ".join(f"{title} {text}".lower().split())
    digest = blake2b(whole.encode("utf-8", "replace"), digest_size=16).digest()
    mark = fingerprint(Page("", title, text, ()))
    return Copy(digest, mark[8:SKETCH], loose)


def copy_of_bytes(body: bytes) -> Copy:
    """Return the copy of a file that is not read as text; only equality can be compared."""
    return Copy(blake2b(body, digest_size=16).digest(), b"")


def distance(old: Copy, new: Copy) -> int | None:
    """Return in how many of 256 lanes two texts differ; about half if they share nothing.

    None: one of the copies is not a text.
    """
    if not old.sketch or not new.sketch:
        return None
    both = (np.frombuffer(copy.sketch, np.uint8) for copy in (old, new))
    return int(np.bitwise_count(np.bitwise_xor(*both)).sum())


def compare(old: Copy, new: Copy, most: int = MAX_DIFFERENCE) -> str:
    """Return SAME, MINOR (the texts differ in at most `most` lanes) or OTHER."""
    if old.hash == new.hash:
        return SAME
    lanes = distance(old, new)
    limit = max(most, LOOSE) if old.loose else most
    return OTHER if lanes is None or lanes > limit else MINOR
