"""Compare the synthetic web with the paper: harvest rates, links, anchors, reward model.

    python benchmarks/calibration.py [--topics food,sports,hardware] [--seeds 3] [--pages 3000]
                                     [--long 20000]

Targets: Random harvests 9.0 / 3.6 / 1.7 % (P Table 3), about 40 new links a page (P 2.6), F-macro
of the reward model .942 / .954 / .908 at 18 irrelevant pages for one relevant (P Table 1).
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import mean
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.lab.webs.prose import EMPTY
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.web import Answer

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TARGETS = {"food": 0.0897, "sports": 0.0355, "hardware": 0.0166}
TABLE1 = {"food": (0.870, 0.908, 0.942), "sports": (0.913, 0.907, 0.954),
          "hardware": (0.800, 0.862, 0.908)}  # fmt: skip
IRRELEVANT_PER_RELEVANT = 18
CAP = 10
HOPS = 6
MOST_SAMPLES, MOST_JUDGED = 3000, 3000  # pages of one crawl kept, of one label judged


@dataclass
class Visited:
    """What one crawl fetched: pages, the true label and kind of site of each, links and anchors."""

    labels: list[bool] = field(default_factory=list)
    kinds: Counter[tuple[str, bool]] = field(default_factory=Counter)
    domains: set[str] = field(default_factory=set)
    samples: list[tuple[str, bytes, bool]] = field(default_factory=list)
    links: int = 0
    fresh: int = 0
    abroad: int = 0
    anchors: int = 0
    empty: int = 0

    @property
    def harvest(self) -> float:
        """Return the share of relevant pages."""
        return mean(self.labels)


class Crawl:
    """A crawl without Scrapy, which fetches pages of a web and collects their links."""

    def __init__(self, web: SyntheticWeb, cap: int = 0) -> None:
        self.web, self.cap = web, cap
        self.closed: set[str] = set()
        self.known: set[str] = set(web.seeds)
        self.spent: Counter[str] = Counter()
        self.visited = Visited()
        self.answer = lru_cache(1000)(self._follow)

    def open(self, url: str) -> bool:
        """Return whether a URL may still be fetched."""
        spent = self.spent[domain(url)]
        return url not in self.closed and (not self.cap or spent < self.cap)

    def fetch(self, url: str) -> list[str]:
        """Fetch a URL, follow redirects, and return all links of the page with repetitions."""
        self.closed.add(url)
        final, answer = self.answer(url)
        if answer.kind != "page" or (final != url and not self.open(final)):
            return []
        self.closed.add(final)
        self.spent[domain(final)] += 1
        visited = self.visited
        visited.labels.append(answer.relevant)
        visited.kinds[answer.site_kind, answer.relevant] += 1
        if len(visited.samples) < MOST_SAMPLES:
            visited.samples.append((final, answer.body, answer.relevant))
        if answer.relevant:
            visited.domains.add(domain(final))
        return self._links(final, answer.body)

    def _follow(self, url: str) -> tuple[str, Answer]:
        answer = self.web.answer(url)
        for _ in range(HOPS):
            if answer.kind != "redirect":
                break
            url = urljoin(url, dict(answer.headers)["Location"])
            answer = self.web.answer(url)
        return url, answer

    def _links(self, base: str, body: bytes) -> list[str]:
        tree = LexborHTMLParser(body)
        for node in tree.css("main a"):
            self.visited.anchors += 1
            self.visited.empty += node.text() in EMPTY
        urls = [urljoin(base, node.attributes["href"] or "") for node in tree.css("a")]
        fresh = set(urls) - self.known
        self.known |= fresh
        self.visited.links += len(urls)
        self.visited.fresh += len(fresh)
        self.visited.abroad += sum(domain(url) != domain(base) for url in fresh)
        return urls


def domain(url: str) -> str:
    """Return the registrable domain of a URL of the web."""
    return ".".join((urlsplit(url).hostname or "").split(".")[-2:])


def pop_random(frontier: list[str], rng: random.Random) -> str:
    """Remove and return a uniform sample of the frontier."""
    place = rng.randrange(len(frontier))
    frontier[place], frontier[-1] = frontier[-1], frontier[place]
    return frontier.pop()


def crawl_random(web: SyntheticWeb, pages: int, seed: int) -> Visited:
    """Choose a random link of the frontier each time."""
    crawl, frontier, rng = Crawl(web), list(web.seeds), random.Random(seed)
    while frontier and len(crawl.visited.labels) < pages:
        if crawl.open(url := pop_random(frontier, rng)):
            frontier += crawl.fetch(url)
    return crawl.visited


def crawl_breadth(web: SyntheticWeb, pages: int) -> Visited:
    """Choose links in the order of discovery."""
    crawl, frontier = Crawl(web), deque(web.seeds)
    while frontier and len(crawl.visited.labels) < pages:
        if crawl.open(url := frontier.popleft()):
            frontier += crawl.fetch(url)
    return crawl.visited


def crawl_oracle(web: SyntheticWeb, pages: int, seed: int, cap: int = 0) -> Visited:
    """Choose a random relevant link, by the true labels, or any link if no relevant one waits."""
    crawl, rng = Crawl(web, cap), random.Random(seed)
    frontier, poor, rejected = list(web.seeds), list[str](), set[str]()
    while (frontier or poor) and len(crawl.visited.labels) < pages:
        known = bool(frontier)
        url = pop_random(frontier if known else poor, rng)
        if not crawl.open(url) or (known and url in rejected):
            continue
        final, answer = crawl.answer(url)
        if known and not (answer.kind == "page" and answer.relevant and crawl.open(final)):
            poor.append(url)
            rejected.add(url)
            continue
        frontier += crawl.fetch(url)
    return crawl.visited


def judge(
    topic: str, crawls: list[Visited], fair: list[Visited]
) -> tuple[float, float, float] | None:
    """Return precision, recall and F-macro of the installed pack, None if there is no pack.

    Relevant pages come from all crawls, irrelevant pages only from fair crawls: a focused crawl
    meets the ambiguous ones more often.
    """
    if not (ROOT / "models" / topic / "topic.toml").exists():
        return None
    from tres_scrapy.page.text import read_page  # noqa: PLC0415
    from tres_scrapy.topic.pack import Pack  # noqa: PLC0415 - packs are optional here

    pack = Pack.load(ROOT / "models" / topic)
    rates = []
    for wanted, visited in ((True, crawls), (False, fair)):
        sample = [s for v in visited for s in v.samples if s[2] == wanted]
        sample = random.Random(0).sample(sample, min(MOST_JUDGED, len(sample)))
        pages = [read_page(body.decode("utf-8", "replace"), url) for url, body, _ in sample]
        judged = pack.judge(pages)
        rates.append(mean(each.probability >= pack.threshold for each in judged))
    return table1(*rates)


def table1(recall: float, false_alarms: float) -> tuple[float, float, float]:
    """Return precision, recall and F-macro, given the two rates, at Table 1's class balance."""
    wrong = IRRELEVANT_PER_RELEVANT * false_alarms
    right = IRRELEVANT_PER_RELEVANT - wrong
    precision = recall / (recall + wrong) if recall + wrong else 0.0
    relevant = 2 * recall / (1 + recall + wrong)
    irrelevant = 2 * right / (IRRELEVANT_PER_RELEVANT + right + 1 - recall)
    return precision, recall, (relevant + irrelevant) / 2


def measure(topic: str, seeds: int, pages: int, long: int) -> Iterator[dict[str, object]]:
    """Yield every figure of a topic as a row of topic, figure, value, target."""
    webs = [SyntheticWeb(topic, seed=seed, slow=False) for seed in range(seeds)]
    drawn = [crawl_random(web, pages, i) for i, web in enumerate(webs)]
    broad = [crawl_breadth(web, pages) for web in webs]
    free = [crawl_oracle(web, pages, i) for i, web in enumerate(webs)]
    capped = crawl_oracle(webs[0], long, 0, CAP)

    def row(figure: str, value: float, target: object = "") -> dict[str, object]:
        return {"topic": topic, "figure": figure, "value": round(value, 4), "target": target}

    yield row("random harvest", mean(v.harvest for v in drawn), TARGETS[topic])
    for seed, visited in enumerate(drawn):
        yield row(f"random harvest, web seed {seed}", visited.harvest)
    yield row("breadth-first harvest", mean(v.harvest for v in broad))
    yield row("oracle harvest, no cap", mean(v.harvest for v in free))
    yield row(f"oracle harvest, {CAP} a domain, {long} pages", capped.harvest, ">= 0.85")
    yield row(f"oracle domains, {CAP} a domain, {long} pages", len(capped.domains))
    for name, crawls in (("random", drawn), ("breadth-first", broad), ("oracle", [*free, capped])):
        fetched = sum(len(v.labels) for v in crawls)
        fresh = sum(v.fresh for v in crawls)
        target = 40 if name == "random" else ""
        yield row(f"links a page, {name}", sum(v.links for v in crawls) / fetched)
        yield row(f"new links a page, {name}", fresh / fetched, target)
        yield row(f"cross-domain share of them, {name}", sum(v.abroad for v in crawls) / fresh)
    everything = [*drawn, *broad, *free, capped]
    empty = sum(v.empty for v in everything) / sum(v.anchors for v in everything)
    yield row("anchors that say nothing", empty, 0.5)
    for kind in ("pure", "mixed", "off", "hub"):
        counted = [sum(v.kinds[kind, label] for v in [*drawn, *broad]) for label in (True, False)]
        yield row(f"relevance on {kind} sites", counted[0] / max(1, sum(counted)))
    if figures := judge(topic, everything, drawn):
        for label, value, goal in zip(("P", "R", "F-macro"), figures, TABLE1[topic], strict=True):
            yield row(f"reward model {label}", value, goal)


def write(rows: list[dict[str, object]], command: str) -> None:
    """Write the rows as CSV and as a Markdown table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "calibration.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, ["topic", "figure", "value", "target"], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    lines = ["# Calibration of the synthetic web", "", f"Made by `{command}`.", ""]
    lines += ["| topic | figure | value | target |", "|---|---|---|---|"]
    lines += [f"| {r['topic']} | {r['figure']} | {r['value']} | {r['target']} |" for r in rows]
    (RESULTS / "calibration.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> None:
    """Measure every topic and write the results."""
    parser = argparse.ArgumentParser(description="Measure the synthetic web against the paper.")
    parser.add_argument("--topics", default="food,sports,hardware")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--long", type=int, default=20_000, help="pages of the capped oracle")
    options = parser.parse_args()
    rows = []
    for topic in options.topics.split(","):
        for row in measure(topic, options.seeds, options.pages, options.long):
            print(*row.values(), sep=" | ", file=sys.stderr)
            rows.append(row)
    write(rows, f"python benchmarks/calibration.py {' '.join(sys.argv[1:])}".strip())


if __name__ == "__main__":
    main()
