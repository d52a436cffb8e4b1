"""The reading of a record, finished or still being written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from tres_scrapy.crawl.crawl import PAGE
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.split import Split
from tres_scrapy.frontier.tree import Rule
from tres_scrapy.report.reason import sentence
from tres_scrapy.report.record_file import open_to_read, reading
from tres_scrapy.report.rule import RuleBook
from tres_scrapy.report.snapshot import DEPENDENCE, TREE


class Rival(NamedTuple):
    """The best sample of a leaf when a page was chosen, but for that page."""

    leaf: int
    q_value: float
    url: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Page:
    """A booked page, or what there was instead, as the columns of the table `page`."""

    step: int
    row: int
    parent: int | None
    time: float
    url: str
    final_url: str | None
    domain: str
    title: str
    anchor: str
    kind: str
    relevant: bool
    copy: bool
    reward: float
    probability: float | None
    x: dict[str, float]
    chosen: str
    leaf: int | None
    splits: int | None
    q_value: float | None
    samples: int | None
    leaves: int | None

    @property
    def outcome(self) -> str:
        """What came of it in one word: relevant, irrelevant, copy, or the kind of the failure."""
        if self.kind != PAGE:
            return self.kind
        return "relevant" if self.relevant else "copy" if self.copy else "irrelevant"


class Point(NamedTuple):
    """A point of the curve; `rate` is pages a second since the point before."""

    step: int
    time: float
    pages: int
    relevant: int
    domains: int
    frontier: int
    leaves: int | None
    rate: float
    loss: float | None


class Domain(NamedTuple):
    """A registrable domain, its pages and those of them that are relevant."""

    name: str
    pages: int
    relevant: int


@dataclass(slots=True)
class Node:
    """A node of the tree: its split if it has one, and what lies below it."""

    leaf: int | None
    split: Split | None = None
    children: tuple[Node, ...] = ()
    fetched: int = 0  # experiences
    reward: float = 0.0  # their sum
    samples: int = 0  # of the frontier
    leaves: int = 1


class Record:
    """The record of a crawl, read anew at each call; RecordError: it is none or damaged.

    Use it as a context manager, or close it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_to_read(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Let all that is read inside be of one moment, however the crawl goes on."""
        self._read("BEGIN")
        try:
            yield
        finally:
            self._read("COMMIT")

    def meta(self) -> dict[str, str]:
        """Return what is known of the crawl: topic, policy, started, written, ended, reason..."""
        return {str(name): str(value) for name, value in self._read("SELECT * FROM meta")}

    def starts(self) -> list[float]:
        """Return when the crawl began and when it was gone on with, in seconds since 1970."""
        times = self.meta().get("starts", "")
        with reading(self.path):
            return [_time(float(time)) for time in times.split()]

    def settings(self) -> dict[str, str]:
        """Return the settings used."""
        found = self._read("SELECT * FROM setting ORDER BY name")
        return {str(name): str(value) for name, value in found}

    def last(self, count: int, *, before: int | None = None) -> list[Page]:
        """Return the last booked pages, the newest first; those before a step if it is given."""
        step = 2**62 if before is None else before
        query = "SELECT * FROM page WHERE step < ? ORDER BY step DESC LIMIT ?"
        return self._pages(query, step, count)

    def since(self, step: int, count: int) -> list[Page]:
        """Return the first pages booked after a step, the oldest first."""
        return self._pages("SELECT * FROM page WHERE step > ? ORDER BY step LIMIT ?", step, count)

    def find(self, url: str) -> Page | None:
        """Return the page of a URL, chosen or answered."""
        query = "SELECT * FROM page WHERE url = ?1 OR final_url = ?1 ORDER BY step LIMIT 1"
        return next(iter(self._pages(query, url)), None)

    def trail(self, page: Page) -> list[Page]:
        """Return the pages from the seed to a page, both included; gaps end it early."""
        trail, rows = [page], {page.row}
        while (parent := trail[-1].parent) is not None and parent not in rows:
            found = self._pages("SELECT * FROM page WHERE row = ?", parent)
            if not found:
                break
            trail += found
            rows.add(parent)
        return trail[::-1]

    def rivals(self, step: int) -> list[Rival]:
        """Return the rivals of the page booked at a step; those of the last pages are kept."""
        found = self._read("SELECT value FROM rivals WHERE step = ?", step)
        with reading(self.path):
            return [
                Rival(int(leaf), float(q), str(url), str(anchor))
                for (value,) in found
                for leaf, q, url, anchor in json.loads(value)
            ]

    def curve(self) -> list[Point]:
        """Return the points of the curve in their order."""
        points = [Point(*point) for point in self._read("SELECT * FROM curve ORDER BY step")]
        with reading(self.path):
            return [point._replace(time=_time(point.time)) for point in points]

    def count(self) -> dict[str, int]:
        """Return the booked pages by outcome, the most frequent first."""
        query = (
            "SELECT CASE WHEN kind <> ? THEN kind WHEN relevant THEN 'relevant' "
            "WHEN copy THEN 'copy' ELSE 'irrelevant' END AS outcome, count(*) AS number "
            "FROM page GROUP BY outcome ORDER BY number DESC, outcome"
        )
        return {str(outcome): int(number) for outcome, number in self._read(query, PAGE)}

    def domains(self, count: int) -> list[Domain]:
        """Return the domains of most relevant pages."""
        query = (
            "SELECT domain, count(*) AS pages, total(relevant) AS good FROM page WHERE kind = ? "
            "GROUP BY domain ORDER BY good DESC, pages, domain LIMIT ?"
        )
        return [
            Domain(str(name), int(pages), int(good))
            for name, pages, good in self._read(query, PAGE, count)
        ]

    @property
    def rules(self) -> RuleBook:
        """The rules of the leaves, those that have come since the last time included."""
        book = self._rules
        query = "SELECT leaf, feature, threshold, reduction FROM split WHERE number >= ? "
        found = self._read(f"{query} ORDER BY number", len(book.rules))
        with reading(self.path):
            new = [
                Rule(int(leaf), Split(range(len(FEATURES))[feature], float(cut), float(reduction)))
                for leaf, feature, cut, reduction in found
            ]
            leaves = range(len(book.rules) + 1, len(book.rules) + len(new) + 1)
            if not all(0 <= rule.leaf < count for rule, count in zip(new, leaves, strict=True)):
                raise ValueError("a split is of no leaf")
        book.extend(new)
        return book

    def rule(self, leaf: int | None, splits: int | None) -> str:
        """Return the rule of a leaf when the tree had so many splits, "" where there is none."""
        if leaf is None or splits is None:
            return ""
        book = self.rules
        with reading(self.path):
            return book.words(leaf, splits)

    def has_moved(self, page: Page) -> bool:
        """Say whether a page's features were no longer those of its leaf when it was chosen."""
        if page.leaf is None or page.splits is None:
            return False
        x, book = list(page.x.values()), self.rules
        with reading(self.path):
            conditions = book.conditions(page.leaf, page.splits)
        return not all(low <= x[feature] < high for feature, low, high in conditions)

    def why(self, page: Page) -> str:
        """Return why a page was chosen as a sentence."""
        rule = self.rule(page.leaf, page.splits)
        return sentence(page.chosen, page.q_value, rule, page.samples or 0, page.leaves or 0)

    def tree(self) -> Node | None:
        """Return the root of the tree as it was last seen, if there is one."""
        value = self._snapshot(TREE)
        if value is None:
            return None
        book = self.rules
        with reading(self.path):
            return _grown(book.rules[: value["splits"]], value["leaves"])

    def dependence(self) -> dict[str, list[tuple[float, float]]]:
        """Return by feature (value, mean Q) as it was last seen; empty where nothing has a Q."""
        value = self._snapshot(DEPENDENCE) or {}
        with reading(self.path):
            return {
                name: [(float(at), float(q)) for at, q in value[name]]
                for name in FEATURES
                if name in value
            }

    @cached_property
    def _rules(self) -> RuleBook:
        return RuleBook()

    def _snapshot(self, name: str) -> Any:
        found = self._read("SELECT value FROM snapshot WHERE name = ?", name)
        with reading(self.path):
            return json.loads(found[0][0]) if found else None

    def _pages(self, query: str, *values: object) -> list[Page]:
        found = self._read(query, *values)
        with reading(self.path):
            return [_page(columns) for columns in found]

    def _read(self, query: str, *values: object) -> list[Any]:
        with reading(self.path):
            return self._connection.execute(query, values).fetchall()


def _page(columns: Sequence[Any]) -> Page:
    values = dict(zip(Page.__slots__, columns, strict=True))
    x = np.frombuffer(values["x"], "<f4").tolist()
    values["x"] = dict(zip(FEATURES, x, strict=True))
    values |= {name: bool(values[name]) for name in ("relevant", "copy")}
    values["time"] = _time(values["time"])
    return Page(**values)


def _time(seconds: float) -> float:
    """Return seconds since 1970; an error of one kind or another if no calendar has them."""
    datetime.fromtimestamp(seconds, UTC)
    return seconds


def _grown(rules: Sequence[Rule], leaves: Sequence[tuple[int, float, int]]) -> Node:
    """Return the root of the tree that splits so, its leaves holding (fetched, reward, samples)."""
    root = Node(0)
    at, order = {0: root}, [root]
    for number, (leaf, split) in enumerate(rules, 1):
        branch, children = at[leaf], (Node(leaf), Node(number))
        branch.leaf, branch.split, branch.children = None, split, children
        at[leaf], at[number] = children
        order += children
    for number, (fetched, reward, samples) in enumerate(leaves):
        at[number].fetched, at[number].reward, at[number].samples = fetched, reward, samples
    for node in reversed(order):
        for child in node.children:
            node.fetched += child.fetched
            node.reward += child.reward
            node.samples += child.samples
        node.leaves = sum(child.leaves for child in node.children) or 1
    return root
