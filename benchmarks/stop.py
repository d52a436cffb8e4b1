"""What a rule of `stop` saves and loses, on the links of recorded webs.

    python benchmarks/stop.py --data FOLDER [--webs sites university] [--topics food ...]
        [--fetches 6000] [--seeds 1 2 3]

A simple crawler that learns (logistic regression on host, anchor, path and the page of each link)
crawls a web without a rule, judged by the true labels; its judge is never wrong, and a fetch takes
no time, so that many crawls can be measured. Then each rule is applied to the past of each crawl:
where it would have stopped, what share of the fetches that saves, and what share of the relevant
pages the rest would have found. "In the interval" is how often the number of relevant pages that
came later lay in the interval of `tres_scrapy/crawl/outlook.py`, at every 100th fetch of the first
half. The data folder holds WEB.warc.gz and WEB-TOPIC.txt, the relevant URLs of a topic.

Instead of what hosts yield, a curve was tried: the yield of the last half of the fetches, falling
exponentially (Poisson regression). It was worse and is not kept; results/stop.md has its figures.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import re
from pathlib import Path
from statistics import mean
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import numpy as np
from fastwarc.warc import ArchiveIterator, WarcRecordType
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.config.limit import StopRule
from tres_scrapy.crawl.outlook import Left, Outlook

RULES = ("coverage:0.9", "coverage:0.95", "yield:0.02", "yield:0.01")
TOPICS = {
    "sites": {
        "sports": "sport football baseball hockey team league championship player coach match",
        "hardware": "electronics arduino circuit microcontroller sensor solder voltage computer",
        "nature": "nature wildlife birds species habitat ecology plants insects forest animals",
        "course": "course homework assignment lecture syllabus midterm exam textbook grading",
        "food": "drink wine cheese spicy chefs meat snacks food recipe cooking",
    },
    "university": {
        "student": "student graduate advisor resume hobbies home",
        "faculty": "professor research publications faculty",
        "course": "course homework assignment lecture syllabus midterm exam textbook grading",
        "project": "project group system research",
    },
}
HUB = "directory.test"  # the generated host whose pages link all sites: its pages are the seeds
WORD: Final = re.compile(r"[a-z]{3,}")
TRIED: Final = 5  # fetches after which a host is no longer new,
NEW: Final = 2.5  # and what a new one adds to a link's log odds
AT_RANDOM: Final = 0.04  # share of the choices
RATE: Final = 0.25  # of AdaGrad
MOST_LINKS: Final = 400  # of a page


class Web(NamedTuple):
    """The URLs of a web, and the links of each page: URL and lower-case anchor text."""

    urls: list[str]
    links: dict[str, list[tuple[str, str]]]


def read(path: Path) -> Web:
    """Read the pages of an archive; what they link to outside it is dead."""
    links: dict[str, list[tuple[str, str]]] = {}
    with path.open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response):
            url = record.headers["WARC-Target-URI"]
            found: dict[str, str] = {}
            for each in LexborHTMLParser(record.reader.read()).css("a[href]")[:MOST_LINKS]:
                target = (each.attributes.get("href") or "").partition("#")[0]
                if target and not target.startswith(("mailto:", "javascript:", "tel:")):
                    try:
                        found.setdefault(urljoin(url, target), (each.text() or "")[:60].lower())
                    except ValueError:  # no address
                        continue
            links.setdefault(url, [*found.items()])
    return Web([*links], links)


class Hosts:
    """How many links wait, by host: what an outlook asks of a store."""

    def __init__(self) -> None:
        self.links: list[int] = []
        self._numbers: dict[str, int] = {}

    def number_of(self, host: str) -> int:
        """Return the number of a host."""
        number = self._numbers.setdefault(host, len(self.links))
        if number == len(self.links):
            self.links.append(0)
        return number

    def waiting(self) -> NDArray[np.int64]:
        """Return how many links to each host wait."""
        return np.array(self.links, dtype=np.int64)


class Guide:
    """Log odds that a link leads to a relevant page, learned from those that were followed."""

    def __init__(self, keywords: str, seed: int) -> None:
        self._weights = {"bias": -2.5, "from:True": 1.0, "keys:1": 1.0, "keys:2": 2.0}
        self._squares: dict[str, float] = {}
        self._kept: list[tuple[list[str], bool]] = []
        self._random = random.Random(seed)
        self._stems = [word[:5] for word in keywords.split()]

    def codes(self, url: str, anchor: str, source: str, *, relevant: bool) -> list[str]:
        """Return what a link says; `relevant` is whether it stands on a relevant page."""
        parts = urlsplit(url)
        keys = min(2, sum(stem in anchor or stem in url.lower() for stem in self._stems))
        inside = urlsplit(source).netloc == parts.netloc
        found = ["bias", f"host:{parts.netloc}", f"from:{relevant}", f"in:{inside}:{relevant}"]
        found += [f"anchor:{word}" for word in WORD.findall(anchor)[:6]]
        return [
            *found,
            *(f"path:{w}" for w in WORD.findall(parts.path.lower())[-6:]),
            f"keys:{keys}",
        ]

    def rate(self, codes: list[str]) -> float:
        """Return the log odds."""
        return sum(self._weights.get(code, 0.0) for code in codes)

    def learn(self, codes: list[str], relevant: bool) -> None:
        """Learn what a link led to, and four earlier ones again."""
        self._kept.append((codes, relevant))
        for some, found in [self._kept[-1], *self._random.choices(self._kept, k=4)]:
            error = 1 / (1 + math.exp(-max(-30.0, min(30.0, self.rate(some))))) - found
            for code in some:
                self._squares[code] = self._squares.get(code, 1.0) + error * error
                step = RATE * error / math.sqrt(self._squares[code])
                self._weights[code] = self._weights.get(code, 0.0) - step


class Moment(NamedTuple):
    """The relevant pages found after a fetch, what is expected, and which rules are met."""

    found: int
    left: Left | None
    met: tuple[bool, ...]


class Crawler:
    """Follows the best link; `moments` has one for each fetch."""

    def __init__(self, web: Web, relevant: set[str], keywords: str, seed: int) -> None:
        self.moments: list[Moment] = []
        self.hosts = Hosts()
        store: Any = self  # an outlook asks for the hosts of a store alone
        self._outlook = Outlook(store)
        self._web = web
        self._relevant = relevant
        self._guide = Guide(keywords, seed)
        self._random = random.Random(seed)
        self._rules = [StopRule.parse(rule) for rule in RULES]
        self._waiting: dict[str, list[str]] = {}  # codes, by URL
        self._of_host: dict[str, dict[str, None]] = {}  # waiting URLs
        self._heap: list[tuple[float, float, str]] = []
        self._fetches: dict[str, int] = {}  # by host
        self._seen: set[str] = set()

    def run(self, fetches: int) -> list[Moment]:
        """Crawl from the hub, or from three relevant pages; return the moments."""
        hub = [url for url in self._web.urls if urlsplit(url).netloc == HUB]
        for url in hub or self._random.sample(sorted(self._relevant), 3):
            self._add(url, "", "")
            self._fetch(url)
        while len(self.moments) < fetches and (url := self._best()):
            self._fetch(url)
        return self.moments

    def _add(self, url: str, anchor: str, source: str) -> None:
        if url in self._seen or url in self._waiting:
            return
        codes = self._guide.codes(url, anchor, source, relevant=source in self._relevant)
        host = urlsplit(url).netloc
        self._waiting[url] = codes
        self._of_host.setdefault(host, {})[url] = None
        self.hosts.links[self.hosts.number_of(host)] += 1
        self._push(url)

    def _push(self, url: str) -> None:
        heapq.heappush(self._heap, (-self._value(url), self._random.random(), url))

    def _value(self, url: str) -> float:
        new = NEW if self._fetches.get(urlsplit(url).netloc, 0) < TRIED else 0.0
        return self._guide.rate(self._waiting[url]) + new

    def _best(self) -> str:
        """Return the best link, now and then any; "" if none waits."""
        if self._waiting and self._random.random() < AT_RANDOM:
            url = self._random.choice(self._heap)[2]
            if url in self._waiting:
                return url
        while self._heap:
            *_, url = heapq.heappop(self._heap)
            if url not in self._waiting:
                continue
            if self._heap and -self._value(url) > self._heap[0][0] + 1e-3:
                self._push(url)  # its value has fallen since
                continue
            return url
        return ""

    def _fetch(self, url: str) -> None:
        host, codes, relevant = urlsplit(url).netloc, self._waiting.pop(url), url in self._relevant
        number = self.hosts.number_of(host)
        self._seen.add(url)
        self.hosts.links[number] -= 1
        del self._of_host[host][url]
        self._fetches[host] = self._fetches.get(host, 0) + 1
        self._guide.learn(codes, relevant)
        for target, anchor in self._web.links.get(url, []):
            self._add(target, anchor, url)
        if relevant:
            for other in self._of_host[host]:
                self._push(other)  # its value has risen
        outlook = self._outlook
        outlook.note(number, relevant=relevant)
        met = tuple(outlook.meets(rule) for rule in self._rules)
        self.moments.append(Moment(outlook.relevant, outlook.left, met))


def within(moments: list[Moment]) -> float:
    """Return how often what came later lay in the interval."""
    total, looks = moments[-1].found, moments[99 : len(moments) // 2 : 100]
    return mean(
        each.left.low - 0.5 <= total - each.found <= each.left.high + 0.5
        for each in looks
        if each.left is not None
    )


def main() -> None:
    """Crawl, apply the rules, and print a row for each crawl and a mean for each rule and web."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--webs", nargs="+", default=list(TOPICS))
    parser.add_argument("--topics", nargs="+")
    parser.add_argument("--fetches", type=int, default=6_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    heads = " | ".join(f"`{rule}`" for rule in RULES)
    print(f"| web | topic | fetches | relevant | in the interval | {heads} |")
    print("|" + "---|" * (5 + len(RULES)), flush=True)
    for name in options.webs:
        web, shares = read(options.data / f"{name}.warc.gz"), []
        for topic in options.topics or TOPICS[name]:
            labels = (options.data / f"{name}-{topic}.txt").read_text(encoding="utf-8").split()
            relevant = {*labels} & web.links.keys()
            for seed in options.seeds:
                crawler = Crawler(web, relevant, TOPICS[name][topic], seed)
                moments = crawler.run(options.fetches)
                count, total, cells = len(moments), max(1, moments[-1].found), []
                for rule in range(len(RULES)):
                    end = next((n for n, m in enumerate(moments, 1) if m.met[rule]), count)
                    cells.append((1 - end / count, 1 - moments[end - 1].found / total))
                shares.append(cells)
                said = " | ".join(f"saved {saved:.0%}, lost {lost:.0%}" for saved, lost in cells)
                about = f"| {name} | {topic} | {count:,} | {total:,} | {within(moments):.0%} "
                print(f"{about}| {said} |", flush=True)
        means = np.array(shares).mean(axis=0)
        said = " | ".join(f"saved {saved:.0%}, lost {lost:.1%}" for saved, lost in means)
        print(f"| {name} | mean of {len(shares)} | | | | {said} |", flush=True)


if __name__ == "__main__":
    main()
