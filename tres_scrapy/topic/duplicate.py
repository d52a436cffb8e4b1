"""Pages that repeat a text under another URL: session ids, print views, mirrors."""

from __future__ import annotations

from hashlib import blake2b

from tres_scrapy.topic.text import Page, tokenise


class SeenTexts:
    """Remembers the texts of a crawl, eight bytes each."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def add(self, page: Page) -> bool:
        """Remember the words of a page; return False if another page had the same ones."""
        words = " ".join(tokenise(f"{page.title} {page.text}"))
        mark = blake2b(words.encode("utf-8", "replace"), digest_size=8).digest()
        is_new = mark not in self._seen
        self._seen.add(mark)
        return is_new
