"""A part of the synthetic web as linked documents, which `corpus` serves and `tres train` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, TypedDict

import numpy as np
from tqdm import tqdm

from tres_scrapy.lab.webs.prose import PARAGRAPH
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.synthetic_page import PAGE, Traits
from tres_scrapy.lab.webs.web import Web
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import whole_file

HOST_PAGES: Final = 10  # most pages of a host
FAVOUR: Final = 3  # times as many hosts of the web's topic as of another
LINKS: Final = "links"  # the category of pages that only link to pages of the topic

Place = tuple[int, int]  # site and number of a page


class Row(TypedDict):
    """A page; `categories` holds its topic, `links` the URLs of other pages of the excerpt."""

    url: str
    title: str
    text: str
    categories: list[str]
    links: list[str]


class Excerpt:
    """The first pages of some hosts of every topic, `count` in all.

    The hosts of a topic are neighbours, which often link to each other. `relevant` of the pages are
    on the topic of the web. Raise TresError if `count` is not above 0.
    """

    def __init__(self, web: SyntheticWeb, count: int) -> None:
        self.pages, self.sites, self.documents = web.pages, web.sites, web.documents
        self.addresses, self.prose = web.addresses, web.documents.prose
        self.topics = self.pages.vocabulary.topics
        pages = list(islice(self._walk(), count))
        self._pages = {(int(page.site[0]), int(page.number[0])): page for page in pages}
        self.hosts = len({site for site, _ in self._pages})
        self.relevant = sum(bool(page.relevant[0]) for page in pages)

    def __len__(self) -> int:
        return len(self._pages)

    def rows(self) -> Iterator[Row]:
        """Yield the pages, those of a host one after the other."""
        urls = {place: self.addresses.urls(page)[0] for place, page in self._pages.items()}
        for place, page in self._pages.items():
            title = self.prose.headings(page)[0]
            yield Row(
                url=urls[place],
                title=title,
                text=f"{title}. {self._text(page)}",
                categories=[self._category(page)],
                links=[urls[each] for each in self._targets(page) if each in urls],
            )

    def _walk(self) -> Iterator[Traits]:
        """Yield one page after the other."""
        for site in self._hosts():
            numbers = np.arange(min(HOST_PAGES, self.sites.size[site]))
            traits = self.pages.traits(np.full(len(numbers), site), numbers)
            yield from (traits.take(row) for row in np.flatnonzero(traits.fate == PAGE)[:, None])

    def _hosts(self) -> Iterator[int]:
        """Yield sites of all topics by turns."""
        for turn in range(max(map(len, self.sites.members))):
            for topic, members in enumerate(self.sites.members):
                share = FAVOUR if topic == self.sites.topic else 1
                yield from map(int, members[turn * share : (turn + 1) * share])

    def _targets(self, page: Traits) -> dict[Place, None]:
        """Return the places that a page links to: home page and sections, then its own links."""
        site, found = int(page.site[0]), self.documents.links.targets(page)
        menu = [(site, number) for number in range(1 + int(self.sites.sections[site]))]
        own = zip(found.site.tolist(), found.number.tolist(), strict=True)
        return dict.fromkeys([*menu, *own])

    def _category(self, page: Traits) -> str:
        """Return the topic of a page; a page of links about the web's topic is not on it."""
        topic = int(page.topic[0])
        irrelevant = topic == self.sites.topic and not page.relevant[0]
        return LINKS if irrelevant else self.topics[topic]

    def _text(self, page: Traits) -> str:
        lines = self.prose.sentences(page, self.prose.length(page))
        blocks = [lines[i : i + PARAGRAPH] for i in range(0, len(lines), PARAGRAPH)]
        return "\n\n".join(map(" ".join, blocks))


def write_collection(web: Web, topic: str, path: Path, count: int) -> str:
    """Write pages of a web as JSON lines; return what was written.

    Raise TresError if the web is not synthetic.
    """
    if not isinstance(web, SyntheticWeb):
        raise TresError("--collection needs the web `synthetic`")
    excerpt = Excerpt(web, count)
    with whole_file(path) as file:
        for row in tqdm(excerpt.rows(), "writing", len(excerpt), unit=" pages", disable=None):
            file.write(f"{json.dumps(row, ensure_ascii=False)}\n".encode())
    about = f"from {excerpt.hosts:,} hosts, {excerpt.relevant:,} of them on {topic}"
    return f"{len(excerpt):,} pages {about}, written to {path}"
