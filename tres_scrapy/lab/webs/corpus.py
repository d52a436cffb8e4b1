"""A web of linked documents: each is a page, at its URL or on the host of its first category."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tres_scrapy.lab.webs.web import HTML, Answer, unknown_host
from tres_scrapy.url.message import TresError

# A document is relevant when a category contains one of these marks or is the topic's name.
# For other topics, it is relevant when a category contains the topic's name.
MARKS = {
    "food": ("Food_and_drink", "Food_and_agriculture", "Everyday_life.Drink"),
    "sports": ("Sports",),
    "hardware": ("IT.",),
}
SEEDS = {"food": "Cheese", "sports": "Cricket", "hardware": "Computer"}
LONGEST_LABEL = 63  # of a host name, by the DNS


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One document of the corpus; `links` are the ids of others."""

    url: str
    title: str
    links: tuple[str, ...]
    text: str
    relevant: bool


class CorpusWeb:
    """The documents of a JSON-lines file, plain or xz: title, text, categories, links, id or url.

    A document without id has its URL as id.

    Raise TresError if no category matches the topic or a line cannot be read, and
    FileNotFoundError if there is no such file.
    """

    https = False
    labelled = True
    notes: tuple[str, ...] = ()

    def __init__(self, path: Path, topic: str) -> None:
        if not path.is_file():
            raise FileNotFoundError(f"no file at data={str(path)!r}: give a corpus in JSON lines")
        self.name = f"corpus-{topic}"
        self.documents = dict(_documents(path, _rule(topic)))
        self.pages = {_key(document.url): document for document in self.documents.values()}
        self.hosts = {host for host, _ in self.pages}
        self.seeds: tuple[str, ...] = (self._start(topic),)

    @property
    def urls(self) -> Sequence[str]:
        """The URLs of the documents."""
        return [document.url for document in self.documents.values()]

    def answer(self, url: str) -> Answer:
        """Return the page of a document, or 404 if no document has this path."""
        host, path = _key(url)
        if host not in self.hosts:
            return unknown_host(host)
        document = self.pages.get((host, path))
        if document is None:
            body = f"<html><title>Not found</title><p>No document at {escape(path)}</html>"
            return Answer(404, body.encode(), HTML, "missing", site_kind="corpus")
        return Answer(200, self._html(document).encode(), HTML, "page", document.relevant, "corpus")

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL is a relevant page; this web has no redirects."""
        found = [self.pages.get(_key(url)) for url in urls]
        return [document is not None and document.relevant for document in found]

    def _start(self, topic: str) -> str:
        """Return the URL of the seed document, else of the relevant one with the most links."""
        relevant = [d for d in self.documents.values() if d.relevant]
        if not relevant:
            raise TresError(f"no document has a category with topic={topic!r}: check categories")
        titled = (d.url for d in relevant if d.title == SEEDS.get(topic.partition("+")[0]))
        return next(titled, max(relevant, key=lambda document: len(document.links)).url)

    def _html(self, document: CorpusDocument) -> str:
        """Return the document as HTML, each link at the first mention of its target's title."""
        targets = [self.documents[link] for link in document.links if link in self.documents]
        waiting = {t.title.lower(): t for t in targets if t.url != document.url}
        titles = "|".join(re.escape(title) for title in sorted(waiting, key=len, reverse=True))
        pattern = re.compile(rf"\b(?:{titles})\b", re.IGNORECASE) if titles else None
        blocks = [block for block in re.split(r"\n\s*\n", document.text) if block.strip()]
        body = "".join(f"<p>{_place(block, pattern, waiting)}</p>\n" for block in blocks)
        rest = "".join(f"<li>{_anchor(t.url, t.title)}</li>" for t in waiting.values())
        see = f"<h2>See also</h2><ul>{rest}</ul>" if rest else ""
        title = escape(document.title)
        return (
            f"<!DOCTYPE html><html><head><title>{title}</title></head>"
            f"<body><h1>{title}</h1>\n{body}{see}</body></html>"
        )


def _rule(topic: str) -> Callable[[str], bool]:
    """Return a function that returns whether a category belongs to a topic, or to one of several.

    Several are joined by "+".
    """
    rules = [_rule_of(name) for name in topic.split("+")]
    return lambda category: any(rule(category) for rule in rules)


def _rule_of(topic: str) -> Callable[[str], bool]:
    if marks := MARKS.get(topic):
        return lambda category: category == topic or any(mark in category for mark in marks)
    return lambda category: topic.lower() in category.lower()


def _documents(path: Path, holds: Callable[[str], bool]) -> Iterator[tuple[str, CorpusDocument]]:
    """Yield (id, document) of every line."""
    for number, line in enumerate(_lines(path), 1):
        try:
            row = json.loads(line)
            categories = [*row["categories"], "uncategorised"]
            url = str(row.get("url") or f"http://{_host(categories[0])}/{row['id']}")
            relevant = any(map(holds, categories))
            document = CorpusDocument(url, row["title"], tuple(row["links"]), row["text"], relevant)
            yield row.get("id", url), document
        except (json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
            raise TresError(f"{path.name} line {number} is not a document: {error!r}") from error


def _lines(path: Path) -> Iterator[str]:
    opener = lzma.open if path.suffix == ".xz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            yield from lines
    except (UnicodeDecodeError, lzma.LZMAError, EOFError) as error:
        raise TresError(f"{path.name} cannot be read: {error}") from error


def _host(category: str) -> str:
    """Return a registrable domain for a category: Science.Biology is biology-science.test."""
    label = "-".join(reversed(category.lower().replace("_", "-").split(".")))
    return f"{label[:LONGEST_LABEL].strip('-')}.test"


def _key(url: str) -> tuple[str, str]:
    """Return the host, and the path with the query."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return parts.hostname or "", unquote(f"{parts.path or '/'}{query}")


def _place(block: str, pattern: re.Pattern[str] | None, waiting: dict[str, CorpusDocument]) -> str:
    """Return a paragraph as HTML; remove the links placed in it from `waiting`."""
    parts, end = [], 0
    for match in pattern.finditer(block) if pattern else ():
        if target := waiting.pop(match[0].lower(), None):
            parts += [
                escape(block[end : match.start()], quote=False),
                _anchor(target.url, match[0]),
            ]
            end = match.end()
    return "".join([*parts, escape(block[end:], quote=False)])


def _anchor(url: str, text: str) -> str:
    return f'<a href="{escape(url)}">{escape(text, quote=False)}</a>'
