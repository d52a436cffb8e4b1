"""Reads the record of a crawl that has ended or is still running."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.limit import ScopeOptions
from tres_scrapy.crawl.crawl import PAGE
from tres_scrapy.frontier.admission import Refusal, Scope
from tres_scrapy.frontier.feature import FEATURES, LINK
from tres_scrapy.run.reason import RuleBook, phrase_of, sentence
from tres_scrapy.run.run_file import (
    FETCHES,
    FETCHES_NOW,
    IN_OUTPUT,
    LONGEST_URL,
    NOW,
    PAGES_NOW,
    Fetch,
    HealthPoint,
    Point,
    Rival,
    StoredText,
    open_to_read,
    reading,
    rights_in,
    rules_in,
    time_of,
)
from tres_scrapy.run.snapshot import (
    DEPENDENCE,
    LINKS,
    TREE,
    LinkWeight,
    Node,
    tree_of_splits,
)
from tres_scrapy.topic.pack import MOVED_THRESHOLD
from tres_scrapy.url.whole_file import check_numbers

MOST_WORDS = 10  # of a search
NO_STEP = 2**62  # after any step
AT_ONCE = 500  # pages that are read at once


class Record:
    """The record of a crawl; each call reads the file again.

    Use it as a context manager or close it. Raise RecordError if the file is not a valid record.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_to_read(path)
        self._book = RuleBook()
        self._connection.create_function("folded", 1, str.lower, deterministic=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Read everything in the block from one snapshot, while the crawl continues."""
        self._read("BEGIN")
        try:
            yield
        finally:
            self._read("COMMIT")

    def meta(self) -> dict[str, str]:
        """Return the facts of the crawl: topic, policy, started, written, ended, reason..."""
        return {str(name): str(value) for name, value in self._read("SELECT * FROM meta")}

    def shards(self) -> int:
        """Return into how many shards the crawl was divided, 1 if it was not."""
        return int(self.meta().get("shards", 1))

    def refused(self) -> dict[str, int]:
        """Return the number of links that the scope refused, by rule, most first."""
        found = self._parsed("refused")
        with reading(self.path):
            counts = Counter({str(rule): int(count) for rule, count in found.items()})
        return dict(counts.most_common())

    def refusal(self, url: str) -> Refusal | None:
        """Return the rule of the scope that refuses a URL wherever it stands, None if none does."""
        given, known = self._parsed("scope"), {spec.name for spec in fields(ScopeOptions)}
        with reading(self.path):
            rules = {name: given[name] for name in given.keys() & known}
            return Scope(ScopeOptions(**rules)).refusal(url)

    def starts(self) -> list[float]:
        """Return when the crawl started and was resumed, in seconds since 1970."""
        times = self.meta().get("starts", "")
        with reading(self.path):
            return [time_of(float(time)) for time in times.split()]

    def settings(self) -> dict[str, str]:
        """Return the settings used."""
        found = self._read("SELECT * FROM setting ORDER BY name")
        return {str(name): str(value) for name, value in found}

    def last(self, count: int, *, before: int = NO_STEP) -> list[Fetch]:
        """Return the last `count` fetches, newest first, optionally only those before a step."""
        query = f"{FETCHES} page WHERE step < ? ORDER BY step DESC LIMIT ?"
        return self._pages(query, before, count)

    def relevant(self, count: int, *, words: str = "", before: int = NO_STEP) -> list[Fetch]:
        """Return the last `count` pages of the output that contain all the words, newest first.

        Titles, URLs and the kept beginnings of the texts are searched.
        """
        searched = "folded(title || ' ' || url || ' ' || ifnull(final_url, '') || ' ' || text)"
        wanted = words.lower().split()[:MOST_WORDS]
        has_all = f" AND instr({searched}, ?)" * len(wanted)
        where = f"{IN_OUTPUT} AND step < ?{has_all}"
        query = f"{FETCHES_NOW} {PAGES_NOW} WHERE {where} ORDER BY step DESC LIMIT ?"
        return self._pages(query, before, *wanted, count)

    def best(self, count: int, topic: str = "") -> list[Fetch]:
        """Return `count` pages of the output: the best of each domain, then the second best...

        In a crawl with several topics, only those that `topic` finds relevant, by its score.
        """
        value, source, values = NOW, PAGES_NOW, tuple[object, ...]()
        where = IN_OUTPUT
        if topic:
            value, source = "value", f"{PAGES_NOW} JOIN score USING (row)"
            where, values = f"{where} AND topic = ? AND value >= ?", (topic, MOVED_THRESHOLD)
        place = f"row_number() OVER (PARTITION BY domain ORDER BY {value} DESC, step)"
        query = f"{FETCHES_NOW} {source} WHERE {where} ORDER BY {place}, {value} DESC, step LIMIT ?"
        return self._pages(query, *values, count)

    def find(self, url: str) -> Fetch | None:
        """Return the fetch of a URL, before or after redirects, None if it was not fetched."""
        query = f"{FETCHES} page WHERE url = ?1 OR final_url = ?1 ORDER BY step LIMIT 1"
        return next(iter(self._pages(query, url)), None)

    def pages(self, least: float | None = None) -> Iterator[Fetch]:
        """Yield pages in order: relevant ones, or all with a P(relevant) from `least` up."""
        where = "relevant" if least is None else "kind = ? AND NOT copy AND probability >= ?"
        values = () if least is None else (PAGE, least)
        query, step = f"{FETCHES} page WHERE {where} AND step > ? ORDER BY step LIMIT ?", 0
        while found := self._pages(query, *values, step, AT_ONCE):
            yield from found
            step = found[-1].step

    def text(self, page: Fetch) -> StoredText:
        """Return the text of a page as the judge read it; its beginning if it was not kept."""
        query = (
            "SELECT first.value FROM text JOIN text first USING (mark) "
            "WHERE text.row = ? AND first.value NOTNULL"
        )
        found = self._read(query, page.row)
        said = self._read("SELECT value FROM rights WHERE row = ?", page.row)
        with reading(self.path):
            rights = rights_in(said)
            for (value,) in found:
                return StoredText.unpacked(value)._replace(rights=rights)
        return StoredText(page.title, page.text, rights=rights)

    def trail(self, page: Fetch) -> list[Fetch]:
        """Return the fetches from the seed to a page, both included; fewer if some are missing."""
        trail, rows = [page], {page.row}
        while (parent := trail[-1].parent) is not None and parent not in rows:
            found = self._pages(f"{FETCHES} page WHERE row = ?", parent) or self._guest(parent)
            if not found:
                break
            trail += found
            rows.add(parent)
        return trail[::-1]

    def remark(self, page: Fetch) -> str:
        """Return what else there is to say about a page, such as what keeps it from an item."""
        found = self._read("SELECT text FROM remark WHERE row = ?", page.row)
        return next((str(text) for (text,) in found), "")

    def scores(self, page: Fetch) -> dict[str, float]:
        """Return P(relevant) of a page by topic, {} if the crawl has one topic."""
        found = self._read("SELECT topic, value FROM score WHERE row = ? ORDER BY topic", page.row)
        return {str(topic): float(value) for topic, value in found}

    def trained(self, page: Fetch) -> float:
        """Return P(relevant) of a page by the trained packs, without what answers corrected."""
        return max(self.scores(page).values(), default=page.probability or 0.0)

    def relevant_steps(self) -> dict[str, list[int]]:
        """Return the steps of the relevant pages of each topic, {} if the crawl has one topic."""
        query = "SELECT topic, step, value >= ? AND relevant FROM score JOIN page USING (row) "
        found: dict[str, list[int]] = {}
        for topic, step, is_relevant in self._read(
            f"{query} ORDER BY topic, step", MOVED_THRESHOLD
        ):
            found.setdefault(str(topic), []).extend([int(step)] if is_relevant else [])
        return found if len(found) > 1 else {}  # one: what answers corrected

    def rivals(self, step: int) -> list[Rival]:
        """Return the rivals of the fetch at a step; only recent fetches keep their rivals."""
        found = self._read("SELECT value FROM rivals WHERE step = ?", step)
        with reading(self.path):
            return [
                Rival(int(leaf), float(q), str(url), str(anchor))
                for (value,) in found
                for leaf, q, url, anchor in json.loads(value)
            ]

    def waiting(self, url: str) -> tuple[Fetch, Rival] | None:
        """Return the last recorded choice at which a URL was a rival, None if it never was."""
        written = json.dumps(url[:LONGEST_URL], ensure_ascii=False)
        query = "SELECT step FROM rivals WHERE instr(value, ?) ORDER BY step DESC LIMIT 1"
        for (step,) in self._read(query, written):
            (page,) = self._pages(f"{FETCHES} page WHERE step = ?", step)
            found = [rival for rival in self.rivals(step) if rival.url == url[:LONGEST_URL]]
            return (page, found[0]) if found else None
        return None

    def outcomes(self, domain: str) -> dict[str, int]:
        """Return the number of fetches of a domain by kind: pages, and kinds of failures."""
        query = "SELECT kind, count(*) FROM page WHERE domain = ? GROUP BY kind ORDER BY kind"
        return {str(kind): int(count) for kind, count in self._read(query, domain)}

    def curve(self) -> list[Point]:
        """Return the points of the curve in order."""
        points = [Point(*point) for point in self._read("SELECT * FROM curve ORDER BY step")]
        with reading(self.path):
            return [point._replace(time=time_of(point.time)) for point in points]

    def health(self) -> list[HealthPoint]:
        """Return memory and answers by time, in order."""
        found = self._read("SELECT * FROM health ORDER BY time")
        with reading(self.path):
            return [
                HealthPoint(
                    time_of(time),
                    None if memory is None else int(memory),
                    {str(name): int(number) for name, number in json.loads(answers).items()},
                )
                for time, memory, answers in found
            ]

    def web_count(self) -> dict[str, float]:
        """Return what the web counted by its labels since the last start, {} without such a web."""
        found = self._parsed("labels")
        with reading(self.path):
            return {str(name): float(number) for name, number in found.items()}

    def changed_settings(self) -> set[str]:
        """Return the names of the settings whose values are not the defaults."""
        return set(map(str, self._parsed("changed")))

    def is_in_output(self, page: Fetch) -> bool:
        """Return whether a page is in the output, as the last model wrote it."""
        query = f"SELECT {IN_OUTPUT} FROM page WHERE step = ?"  # noqa: S608 - a constant
        return any(is_in for (is_in,) in self._read(query, page.step))

    def count(self) -> dict[str, int]:
        """Return the number of fetches by outcome, most frequent first; relevant: in the output."""
        query = (
            f"SELECT CASE WHEN kind <> ? THEN kind WHEN {IN_OUTPUT} "  # noqa: S608 - a constant
            "THEN 'relevant' WHEN copy THEN 'copy' ELSE 'irrelevant' END AS outcome, "
            "count(*) AS number FROM page GROUP BY outcome ORDER BY number DESC, outcome"
        )
        return {str(outcome): int(number) for outcome, number in self._read(query, PAGE)}

    def domains(self, count: int) -> list[tuple[str, int, int]]:
        """Return name, pages and pages in the output of the `count` domains with most of these.

        A count of -1 stands for all of them.
        """
        query = (
            f"SELECT domain, count(*) AS pages, total({IN_OUTPUT}) AS good "  # noqa: S608 - the same
            "FROM page WHERE kind = ? GROUP BY domain ORDER BY good DESC, pages, domain LIMIT ?"
        )
        found = self._read(query, PAGE, count)
        return [(str(name), int(pages), int(good)) for name, pages, good in found]

    @property
    def rules(self) -> RuleBook:
        """The rules of the leaves, updated with the splits since the last use."""
        book = self._book
        with reading(self.path):
            new = rules_in(self._connection, len(book.rules))
            leaves = range(len(book.rules) + 1, len(book.rules) + len(new) + 1)
            if not all(0 <= rule.leaf < count for rule, count in zip(new, leaves, strict=True)):
                raise ValueError("a split belongs to no leaf")
        book.extend(new)
        return book

    def rule(self, leaf: int | None, splits: int | None) -> str:
        """Return the rule of a leaf when the tree had `splits` splits, "" without a tree."""
        if leaf is None or splits is None:
            return ""
        book = self.rules
        with reading(self.path):
            return book.words(leaf, splits)

    def has_moved(self, page: Fetch) -> bool:
        """Return whether a link no longer matched the rule of its leaf when it was chosen."""
        if page.leaf is None or page.splits is None:
            return False
        x, book = list(page.x.values()), self.rules
        with reading(self.path):
            conditions = book.conditions(page.leaf, page.splits)
        return not all(low <= x[feature] < high for feature, low, high in conditions)

    def why(self, page: Fetch) -> str:
        """Return why a page was chosen, in sentences."""
        rule, link = self.rule(page.leaf, page.splits), phrase_of(page.link)
        size = page.samples or 0, page.leaves or 0
        return sentence(page.chosen, page.q_value, rule, *size, link=link)

    def tree(self) -> Node | None:
        """Return the root of the tree at the last snapshot, None without a tree."""
        value = self.snapshot(TREE)
        if value is None:
            return None
        book = self.rules
        with reading(self.path):
            return tree_of_splits(book.rules[: value["splits"]], value["leaves"])

    def dependence(self) -> dict[str, list[tuple[float, float]]]:
        """Return (value, mean Q) by feature at the last snapshot; empty for policies without Q."""
        value = self.snapshot(DEPENDENCE) or {}
        with reading(self.path):
            return {
                name: [(float(at), float(q)) for at, q in value[name]]
                for name in FEATURES
                if name in value
            }

    def link_weights(self) -> dict[str, list[LinkWeight]]:
        """Return the strongest weights of the link model by group; empty without a link model."""
        value = self.snapshot(LINKS) or {}
        with reading(self.path):
            found = {
                group: [
                    LinkWeight(str(text), float(weight), int(fetched), int(relevant))
                    for text, weight, fetched, relevant in weights
                ]
                for group, weights in value.items()
            }
            check_numbers("a weight", [each.weight for all_ in found.values() for each in all_])
        return found

    def predictions(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return P(relevant | link) [n] of each fetch at its choice, and whether it had a reward.

        Both are empty without a link model.
        """
        found = self._read("SELECT x, reward > 0 FROM page WHERE link NOT NULL ORDER BY step")
        with reading(self.path):
            x = np.frombuffer(b"".join(x for x, _ in found), "<f4").reshape(-1, len(FEATURES))
            check_numbers("a feature", x)
            return x[:, LINK], np.array([bool(good) for _, good in found], dtype=np.bool_)

    def snapshot(self, name: str) -> Any:
        """Return what was written last under a name of `run/snapshot.py`, None if nothing was."""
        found = self._read("SELECT value FROM snapshot WHERE name = ?", name)
        with reading(self.path):
            return json.loads(found[0][0]) if found else None

    def _parsed(self, name: str) -> Any:
        """Return the JSON of a fact of the crawl, {} if the crawl has not noted it."""
        with reading(self.path):
            return json.loads(self.meta().get(name, "{}"))

    def _guest(self, row: int) -> list[Fetch]:
        """Return the fetch of a page that another shard has fetched, [] if it is missing."""
        found = self._read("SELECT url FROM guest WHERE row = ?", row)
        pages = [self.find(str(url)) for (url,) in found]
        return [page for page in pages if page is not None]

    def _pages(self, query: str, *values: object) -> list[Fetch]:
        found = self._read(query, *values)
        with reading(self.path):
            return [Fetch.read(columns) for columns in found]

    def _read(self, query: str, *values: object) -> list[Any]:
        with reading(self.path):
            return self._connection.execute(query, values).fetchall()
