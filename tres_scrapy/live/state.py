"""The state of a crawl of one or more shards, and its speed, as its page, metrics and log show it.

A crawl in one process is the case of one shard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Self

from tqdm import tqdm

from tres_scrapy.config.typed import typed
from tres_scrapy.frontier.admission import OUT_OF_SCOPE
from tres_scrapy.url.message import counted

Figures = Mapping[str, float | str]
FAILURES: Final = "failures/"  # before the kind of a failure, in the name of a figure
LATEST: Final = ("q_loss", "skipped_updates", "updates")  # of the one learner: no sums
ENOUGH: Final = 20  # pages from which on hardly a relevant one is worth a warning,
HARDLY: Final = 0.05  # which is this share at most
BOUND: Final = f"{OUT_OF_SCOPE}allowed_domains"  # a figure: links refused
ECHOES: Final = "echoes"  # a figure: relevant pages put together from phrases of other sites
REPEATED: Final = 0.3  # share of the relevant pages from which on these are worth a warning
OF_ONE_SITE: Final = 12  # relevant pages from which on a single site is worth one
WINDOW: Final = 60.0  # seconds; older marks say little about the next minute


@dataclass(frozen=True)
class CrawlState:
    """The figures of each shard that has reported, by its number, named as `Crawl.figures` does.

    `count` is how many shards there are, None for a crawl in one process. `limit` is the number of
    pages wanted in all.
    """

    shards: Mapping[int, Figures]
    limit: int | None = None
    count: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every shard has reported: before, pages of earlier starts are missing."""
        return len(self.shards) == (self.count or 1)

    @property
    def pages(self) -> int:
        """The pages of all shards."""
        return int(self.sum("pages"))

    @property
    def harvest_rate(self) -> float:
        """The share of relevant pages, 0 to 1."""
        return self.sum("relevant_pages") / max(1, self.pages)

    @property
    def opens_at(self) -> float:
        """When the first closed site opens, in seconds since 1970, if all shards wait; else 0."""
        return min((float(each.get("opens_at", 0)) for each in self.shards.values()), default=0.0)

    def sum(self, name: str) -> float:
        """Return the sum of a figure over all shards."""
        return sum(float(figures.get(name, 0)) for figures in self.shards.values())

    def warnings(self) -> list[str]:
        """Return what looks wrong of the whole crawl."""
        names = "pages", "relevant_pages", "relevant_domains", BOUND, ECHOES
        return list(warnings_of(*(int(self.sum(name)) for name in names)).values())

    def figures(self) -> dict[str, float]:
        """Return the figures of the whole crawl: sums of those of its shards, or what fits.

        There are none before the first state of a shard.
        """
        if not self.shards:
            return {}
        found: dict[str, list[float]] = {}
        for figures in self.shards.values():
            for name, value in figures.items():
                if not isinstance(value, str):
                    found.setdefault(name, []).append(float(value))
        total = {name: sum(values) for name, values in found.items()}
        total |= {name: max(found[name]) for name in LATEST if name in found}
        choices = self.pages + failures(total) + total.get("leased", 0)
        return total | {"harvest_rate": self.harvest_rate, "choices": choices}

    def rows(self) -> list[dict[str, Any]]:
        """Return what the live page says of each shard."""
        return [_row(shard, self.shards.get(shard)) for shard in range(self.count or 1)]


def warnings_of(
    pages: int, relevant: int, domains: int, bound: int = 0, echoes: int = 0
) -> dict[str, str]:
    """Return what looks wrong of a crawl with so many pages, by what it is.

    One with links `bound` by `allowed_domains` may be of one site. Of the relevant pages, `echoes`
    say again what other sites said.
    """
    found = {}
    if pages >= ENOUGH and relevant <= HARDLY * pages:
        found["hardly"] = (
            f"Hardly a page fits: {relevant} of {pages} pages "
            f"{'is' if relevant == 1 else 'are'} relevant; the seed may be off topic: give "
            "another one"
        )
    if relevant >= OF_ONE_SITE and domains == 1 and not bound:
        found["one site"] = (
            f"All {relevant} relevant pages are of one site, which may not be the topic: give "
            f"seeds of other sites, or lower {typed('max_per_domain')}"
        )
    if relevant >= ENOUGH and echoes > REPEATED * relevant:
        found["repeated"] = (
            f"{echoes} of {relevant} relevant pages are put together from phrases of other sites, "
            "as generated pages are; their links earn nothing"
        )
    return found


def failures(figures: Figures) -> int:
    """Return the number of failed fetches in figures."""
    return round(sum(float(n) for name, n in figures.items() if name.startswith(FAILURES)))


def _row(shard: int, figures: Figures | None) -> dict[str, Any]:
    if figures is None:
        return {"shard": shard, "state": "starting"}
    pages = float(figures["pages"])
    return {
        "shard": shard,
        "state": figures["state"],
        "pages": pages,
        "harvest": float(figures.get("relevant_pages", 0)) / max(1, pages),
        "domains": figures.get("relevant_domains", 0),
        "frontier": figures.get("frontier_size", 0),
        "q": figures["last_q"],
        "failures": failures(figures),
        "outbox": figures.get("outbox", 0),
        "age": figures.get("report_age"),
    }


class Monitor:
    """Keeps the latest state of a crawl, and measures pages a second, overall and of late."""

    def __init__(self, state: CrawlState, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, int] | None = None  # pages of a resumed crawl included
        self._marks = deque[tuple[float, int]]()
        self.take(state)

    def take(self, state: CrawlState) -> Self:
        """Take a new state; its pages count in the speed once all shards have reported."""
        self.state = state
        if state.is_complete:
            now = self._clock()
            self._marks.append((now, state.pages))
            self._first = self._first or self._marks[0]
            while len(self._marks) > 2 and self._marks[1][0] <= now - WINDOW:
                self._marks.popleft()
        return self

    @property
    def is_resumed(self) -> bool:
        """Whether there were pages at the start, which do not count in the speed."""
        return self._first is not None and self._first[1] > 0

    @property
    def recent(self) -> float:
        """Pages a second over the last WINDOW."""
        return _rate(self._marks[0], self._marks[-1]) if self._marks else 0.0

    @property
    def overall(self) -> float:
        """Pages a second since the start."""
        return _rate(self._first, self._marks[-1]) if self._first is not None else 0.0

    @property
    def left(self) -> float | None:
        """The seconds until the last page at the recent speed, or None if unknown."""
        if self.state.limit is None or not self.recent:
            return None
        return max(0, self.state.limit - self.state.pages) / self.recent

    def described(self, *, closing: bool = False, short: bool = False) -> list[str]:
        """Return the progress as texts, the most important first; a terminal needs `short` ones."""
        state, left = self.state, None if closing else self.left
        domains, frontier = state.sum("relevant_domains"), f"{state.sum('frontier_size'):,.0f}"
        of_limit = "" if state.limit is None else f"/{state.limit:,}"
        return [
            f"{state.pages:,}{of_limit} pages",
            "" if left is None else f"{tqdm.format_interval(left)} left",
            f"harvest{'' if short else ' rate'} {100 * state.harvest_rate:.1f} %",
            f"domains {domains:,.0f}" if short else counted(domains, "relevant domain"),
            self.speed(closing=closing) if self._marks else "",
            f"frontier {frontier}{in_leaves(state) if short else ''}",
        ]

    def speed(self, *, closing: bool = False) -> str:
        """Return the pages a second as a text, of late or, for a crawl that ends, of all."""
        if closing:
            return f"{self.overall:.1f} pages/s{self.since}"
        return f"{self.recent:.1f} pages/s"

    @property
    def since(self) -> str:
        """What follows a figure that does not count what there was before a resumption."""
        return " since this start" if self.is_resumed else ""


def in_leaves(state: CrawlState) -> str:
    """Return in how many leaves the frontier is, "" without a tree."""
    if not any("leaves" in figures for figures in state.shards.values()):
        return ""
    count = state.sum("leaves")
    return f" in {counted(count, 'leaf')}"


def _rate(since: tuple[float, int], until: tuple[float, int]) -> float:
    seconds = until[0] - since[0]
    return (until[1] - since[1]) / seconds if seconds > 0 else 0.0
