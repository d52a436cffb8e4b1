"""A web of recorded pages: each URL returns its recorded answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.lab.webs.recording import BROKEN, KINDS, Recording
from tres_scrapy.lab.webs.search import HOST, SEARCH, Engine
from tres_scrapy.lab.webs.web import TEXT, Answer
from tres_scrapy.url.message import plainly, plural

HOPS: Final = 10  # most redirects followed to find a label
TITLE_WEIGHT: Final = 3  # times the search engine counts the words of a title
_SHOWN: Final = 60  # letters shown of a topic, which a file may choose


class RecordedWeb:
    """The responses in a WARC file or a folder of WARC files; any other URL is 404.

    A page is relevant if the crawl that recorded it, or the file of labels, says so.
    """

    search = SEARCH
    https = True

    def __init__(self, data: Path, labels: Path | None = None) -> None:
        self.recording = Recording(data, labels)
        self.name = f"recorded-{data.name}"
        self.engine = Engine(self._texts, self._results)
        self._pages = [url for url, _ in self.recording.pages()]
        first = next((url for url in self.recording.slots if "/robots.txt" not in url), "")
        self.seeds: tuple[str, ...] = self.recording.seeds or (first,)

    @property
    def urls(self) -> Sequence[str]:
        """The recorded URLs."""
        return list(self.recording.slots)

    @property
    def labelled(self) -> bool:
        """Whether any page has a label."""
        return bool(self.recording.labelled)

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for the user about the recording, shown before the crawl."""
        recording, hosts = self.recording, {urlsplit(url).netloc for url in self._pages}
        notes = [
            f"{len(recording.slots)} recorded {plural(len(recording.slots), 'URL')}, "
            f"{len(self._pages)} {plural(len(self._pages), 'page')} of {len(hosts)} "
            f"{plural(len(hosts), 'host')}"
            f"{recording.faults()}"
        ]
        if recording.topic:
            notes.append(f"Recorded by a crawl on {recording.topic[:_SHOWN]!r}")
        if not recording.labelled:
            notes.append("No page has a label, so no page counts as relevant: give labels")
        return tuple(notes)

    def answer(self, url: str) -> Answer:
        """Return the recorded answer, or 404 of kind `unrecorded` if the URL was not recorded."""
        slot = self.recording.find(url)
        if slot is None:
            if urlsplit(url).hostname == HOST:
                return self.engine.answer(url)
            return Answer(404, b"this was not recorded\n", TEXT, "unrecorded", False, "recorded")
        try:
            status, headers, body = self.recording.read(slot)
        except BROKEN as error:
            return Answer(502, f"{plainly(error)}\n".encode(), TEXT, "error", False, "recorded")
        if status < 200:
            return Answer(502, b"only a part of an answer was recorded\n", TEXT, "error")
        kind, relevant = KINDS[self.recording.kind(slot)], self.recording.relevant(slot)
        return Answer(status, body, headers, kind, relevant, "recorded")

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL, after redirects, is a relevant page."""
        return [self._label(url) for url in urls]

    def _label(self, url: str) -> bool:
        for _ in range(HOPS + 1):
            slot = self.recording.find(url)
            if slot is None or slot not in self.recording.targets:
                return slot is not None and self.recording.relevant(slot)
            url = self.recording.targets[slot]
        return False

    def _texts(self) -> Iterator[str]:
        for url in self._pages:
            title, text = _read(self.answer(url).body)
            yield TITLE_WEIGHT * f"{title}\n" + text

    def _results(self, found: Sequence[int]) -> list[tuple[str, str]]:
        urls = [self._pages[place] for place in found]
        return [(url, _read(self.answer(url).body)[0]) for url in urls]


def _read(body: bytes) -> tuple[str, str]:
    """Return the title and the text of a page."""
    tree = LexborHTMLParser(body)
    title = tree.css_first("title")
    for node in tree.css("script, style"):
        node.decompose()
    return title.text() if title else "", tree.body.text(separator=" ") if tree.body else ""
