"""What of a page counts when it is asked whether it has changed: its main text."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.duplicate import LANES, MAX_DIFFERENCE, fingerprint
from tres_scrapy.page.soft_404 import is_soft_404
from tres_scrapy.page.text import BOILERPLATE, LIMITS, MIN_TEXT_WORDS, Page, read_page

# What differs at every fetch by the name of its element: class names that begin so.
NOISE: Final = ("advert", "banner", "sponsor", "promo", "cookie", "consent", "newsletter", "share")
ADVERTS: Final = ", ".join(
    [*(f'[class*="{name}" i], [id^="{name}" i]' for name in NOISE), "[class~=ad]", "[class~=ads]"]
)
SAME, MINOR, OTHER = "unchanged", "minor", "changed"
# A copy of the crawl was read with the adverts in it: it may differ from the page in more lanes.
LOOSE: Final = 24


@dataclass(frozen=True, slots=True)
class Copy:
    """What is kept of a page to compare it with: a hash of its text, and its sketch.

    The hash tells whether it is letter for letter the same, the sketch how much it differs.
    `loose`: another reader than this module's has made it.
    """

    hash: bytes
    sketch: bytes
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A page as it is compared and handed on; `links` are those of its main part."""

    title: str
    text: str
    links: tuple[tuple[str, str], ...]
    copy: Copy
    missing: bool = False  # it says that there is no such page, with status 200

    @property
    def thin(self) -> bool:
        """Whether it has so few words that what a crawl has read besides may outweigh them."""
        return len(self.text.split()) <= 2 * MIN_TEXT_WORDS


def read(html: str, url: str, limits: ReadingLimits = LIMITS) -> Reading:
    """Read a page without navigation, adverts and what else of it says nothing of its content."""
    tree = LexborHTMLParser(html[: limits.html].encode("utf-8", "replace"))
    for node in tree.css(f"{BOILERPLATE}, {ADVERTS}"):
        if node.tag not in {"html", "body", "main", "article"}:
            node.decompose()
    page = read_page(tree.html or "", url, limits, language=False, least_words=0)
    copy = copy_of(page.title, page.text)
    return Reading(page.title, page.text, page.links, copy, is_soft_404(page))


def copy_of(title: str, text: str, *, loose: bool = False) -> Copy:
    """Return what is kept of a text."""
    whole = " ".join(f"{title} {text}".lower().split())
    digest = blake2b(whole.encode("utf-8", "replace"), digest_size=16).digest()
    mark = fingerprint(Page("", title, text, ()))
    return Copy(digest, mark[-LANES // 8 :], loose)


def copy_of_bytes(body: bytes) -> Copy:
    """Return what is kept of an answer that is no HTML: its bytes, equal or not."""
    return Copy(blake2b(body, digest_size=16).digest(), b"")


def distance(old: Copy, new: Copy) -> int | None:
    """Return in how many of 256 lanes two texts differ, in half of them if they share nothing.

    None: one of them is no text.
    """
    if not old.sketch or not new.sketch:
        return None
    both = (np.frombuffer(copy.sketch, np.uint8) for copy in (old, new))
    return int(np.bitwise_count(np.bitwise_xor(*both)).sum())


def compare(old: Copy, new: Copy, most: int = MAX_DIFFERENCE) -> str:
    """Tell whether a page is the same, nearly the same (in at most `most` lanes) or changed."""
    if old.hash == new.hash:
        return SAME
    lanes = distance(old, new)
    limit = max(most, LOOSE) if old.loose else most
    return OTHER if lanes is None or lanes > limit else MINOR
