"""Pages that repeat a text under another URL: session ids, print views, mirrors."""

from __future__ import annotations

from hashlib import blake2b

from tres_scrapy.topic.text import Page, tokenise


def fingerprint(page: Page) -> bytes:
    """Return eight bytes that pages with the same words share."""
    words = " ".join(tokenise(f"{page.title} {page.text}"))
    return blake2b(words.encode("utf-8", "replace"), digest_size=8).digest()
