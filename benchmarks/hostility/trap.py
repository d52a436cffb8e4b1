"""A web in which some pages link to a trap: endless generated pages in the words of the topic."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from html import unescape
from itertools import pairwise
from random import Random
from typing import Final
from urllib.parse import urljoin, urlsplit

from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.web import HTML, TEXT, Answer, Web

KINDS: Final = ("host", "subdomains", "domains")
KNOWING: Final = ("expired", "earning")  # attackers who know how the crawler trusts
EXPIRED: Final = 40  # domains
TEXTS: Final = ("pieces", "words", "chain", "names")
TRAP: Final = "TRAP"  # variable of the environment: kind, text and share
MARK: Final = "snare"  # in the name of each host of a trap
LESSONS: Final = 30  # relevant pages that a trap learns its words from
SEARCHED: Final = 600  # pages looked at for them, at most
WORDS: Final = 250  # of a page
INVENTED: Final = 0.2
LINKS: Final = 20  # of a page
TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
HREF = re.compile(r'href="?([^"\s>]+)')


class TrappedWeb:
    """Another web, of whose pages a share links to a trap.

    The trap has one host, endless subdomains or endless domains; or domains that have expired and
    that honest sites still link to ("expired"); or endless domains of whose links half lead to
    honest pages ("earning"). Its pages have the words of
    relevant pages, and none is relevant: in pieces of eight words ("pieces"), in any order
    ("words"), each after one that it follows on a relevant page ("chain"), or in any order and a
    fifth of them words that no page has ("names"). The same `seed` gives the same trap.
    """

    def __init__(
        self, web: Web, kind: str, share: float, *, text: str = "pieces", seed: int = 0
    ) -> None:
        self.name = f"{web.name}-{kind}-{share:g}-{text}"
        self.seeds, self.https = web.seeds, web.https
        self.labelled, self.notes = web.labelled, web.notes
        self._web = web
        self._kind = kind
        self._share = share
        self._seed = seed
        self._text = text
        self._words: list[str] = []
        self._honest: list[str] = []  # what relevant pages link to
        self._next: dict[str, list[str]] = {}

    def answer(self, url: str) -> Answer:
        """Return a page of the trap, or that of the web, perhaps with a link to the trap."""
        if is_trap(url):
            if urlsplit(url).path == "/robots.txt":
                return Answer(404, b"", TEXT, "missing")
            return Answer(200, self._page(url).encode(), HTML, "trap")
        answer = self._web.answer(url)
        at = answer.body.rfind(b"</body>")
        if answer.kind != "page" or at < 0 or self._draw(url).random() >= self._share:
            return answer
        link = self._link(self._draw(f"{url} link"))
        return replace(answer, body=answer.body[:at] + link.encode() + answer.body[at:])

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL is a relevant page; those of the trap are not."""
        labels = self._web.labels([url for url in urls if not is_trap(url)])
        honest = iter(labels)
        return [not is_trap(url) and next(honest) for url in urls]

    def _page(self, url: str) -> str:
        draw = self._draw(url)
        links = "".join(f"<li>{self._link(draw, url)}</li>" for _ in range(LINKS))
        title, head = (self._phrase(draw, 8).capitalize() for _ in range(2))
        return (
            f"<html lang=en><head><title>{title}</title></head><body>"
            f"<h1>{head}</h1><p>{self._phrase(draw, WORDS)}</p><ul>{links}</ul></body></html>"
        )

    def _link(self, draw: Random, source: str = "") -> str:
        number = draw.getrandbits(40)
        host = {
            "host": f"www.{MARK}.com",
            "subdomains": f"s{number:x}.{MARK}.com",
            "domains": f"{MARK}{number:x}.com",
            "earning": f"{MARK}{number:x}.com",
            "expired": f"{MARK}{number % EXPIRED}.com",
        }[self._kind]
        has_domains = self._kind not in {"host", "subdomains"}
        if source and has_domains and draw.random() < 0.5:  # half stay on the domain
            host = urlsplit(source).hostname or host
        phrase = self._phrase(draw, 8).capitalize()
        if source and self._kind == "earning" and draw.random() < 0.5:
            return f'<a href="{draw.choice(self._honest)}">{phrase}</a>'
        path = re.sub(r"\W+", "-", phrase.lower()).strip("-")
        return f'<a href="http://{host}/{path}-{number:x}">{phrase}</a>'

    def _phrase(self, draw: Random, count: int) -> str:
        """Return a text of so many words."""
        known = self._known()
        if self._text == "pieces":
            places = (draw.randrange(len(known) // 8) * 8 for _ in range(-(-count // 8)))
            return " ".join(word for place in places for word in known[place : place + 8])
        words = [draw.choice(known)]
        while len(words) < count:
            if self._text == "names" and draw.random() < INVENTED:
                words.append("".join(draw.choices("abcdefghilmnoprstu", k=7)))
            else:
                words.append(draw.choice(self._next[words[-1]] if self._text == "chain" else known))
        return " ".join(words)

    def _known(self) -> list[str]:
        """Return the words of relevant pages, one after the other."""
        if not self._words:
            self._words = [word for text in self._lessons() for word in text.split()]
            for word, after in pairwise([*self._words, self._words[0]]):
                self._next.setdefault(word, []).append(after)
        return self._words

    def _lessons(self) -> Iterator[str]:
        """Yield the texts of the first relevant pages that links lead to."""
        waiting, seen, found = list(self._web.seeds), set(self._web.seeds), 0
        for url in waiting:
            answer = self._web.answer(url)
            if answer.relevant:
                found += 1
                yield unescape(TAG.sub(" ", answer.body.decode("utf-8", "replace")))
            if found == LESSONS or len(waiting) > SEARCHED:
                return
            location = dict(answer.headers).get("Location")
            links = [location] if location else HREF.findall(answer.body.decode("latin-1"))
            new = [urljoin(url, link) for link in links]
            self._honest += new if answer.relevant else []
            new = [link for link in dict.fromkeys(new) if link not in seen]
            seen.update(new)
            waiting.extend(new)

    def _draw(self, name: str) -> Random:
        return Random(blake2b(f"{self._seed} {name}".encode(), digest_size=8).digest())


def is_trap(url: str) -> bool:
    """Return whether a URL is one of a trap."""
    return MARK in (urlsplit(url).hostname or "")


def served_trap(topic: str, seed: int) -> TrappedWeb:
    """Return the synthetic web with the trap that the environment names, for `web=`."""
    kind, text, share = os.environ[TRAP].split()
    return TrappedWeb(SyntheticWeb(topic, seed=seed), kind, float(share), text=text)
