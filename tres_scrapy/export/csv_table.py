"""The pipeline that lists what was found in two tables: pages and domains."""

from __future__ import annotations

import csv
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, Final, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import named, typed
from tres_scrapy.export.output_file import LineFile, beside
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.items import RelevantPage
from tres_scrapy.url.message import TresError, plainly, printable
from tres_scrapy.url.whole_file import whole_file

PAGES, DOMAINS = ".csv", "-domains.csv"
COLUMNS: Final = {  # of the table of pages, and their meaning
    "url": "the URL that was chosen",
    "final_url": "the URL that answered, after redirects",
    "domain": "registrable domain of `final_url`",
    "new": "whether neither URL is in the files of `TRES_KNOWN`",
    "new_domain": "whether its domain is not in these files",
    "probability": "P(relevant)",
    "title": "title of the page",
    "language": "ISO 639-1",
    "depth": "links from the seed",
    "found_on": "the page with the link; empty for seeds",
    "anchor": "the text of the link",
    "fetched_at": "ISO 8601, UTC",
}
DOMAIN_COLUMNS: Final = {  # of the table of domains
    "domain": "registrable domain with a relevant page",
    "new": "whether it is not in the files of `TRES_KNOWN`",
    "pages": "pages of it that were fetched",
    "relevant": "relevant pages of it",
    "first_seen": "when its first relevant page was fetched",
    "last_seen": "when its last relevant page was fetched",
    "first_url": "URL of its first relevant page",
}
SCORE: Final = "score_{}"  # a column for each topic of a crawl with several
RARELY: Final = 30.0  # seconds between writes of the table of domains
SHARE: Final = 0.01  # of the time of the crawl, at most, for writing it
FORMULA: Final = tuple("=+-@\t\r")  # a cell that begins so is a formula in a spreadsheet

logger = logging.getLogger(__name__)


class CsvPipeline(LineFile):
    """Writes each relevant page to one table, and totals of its domain to another.

    A crawl that continues an output continues its tables too, also if they are not asked for again.
    Runs before the JSON lines: if a kill leaves only the row, the item is exported again.
    """

    def __init__(
        self,
        path: Path,
        pages_of: Callable[[str], int],
        job: Job | None = None,
        stop: Callable[[str], None] = lambda reason: None,
        topics: Sequence[str] = (),
    ) -> None:
        super().__init__(beside(path, PAGES), job, stop)
        self._output = path
        self.domains_path = beside(path, DOMAINS)
        self._columns = _columns(topics)
        self._pages_of = pages_of
        self._urls: set[str] = set()
        self._domains: dict[str, dict[str, str]] = {}  # rows by domain
        self._before: dict[str, int] = {}  # pages of domains that crawls without JOBDIR fetched
        self._due = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        session = CrawlSession.of(crawler)
        if not config.output.csv:
            if not _is_continued(session.output, config.topics):
                raise NotConfigured
            if crawler.settings.get("TRES_CSV") is not None:
                logger.warning("csv=0: %s is not continued", beside(session.output, PAGES))
                raise NotConfigured
        pages_of = session.crawl.store.ledger.pages_of
        pipeline = cls(session.output, pages_of, session.job, session.stop, config.topics)
        pipeline.open()
        return pipeline

    def open(self) -> None:
        """Open the tables; raise ConfigError if they cannot be written or are not ours."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                self._resume()
            self._file = self.path.open("a", encoding="utf-8", newline="")
            if not self._file.tell():
                self._begin()
            self._write_domains()
        except (OSError, TresError, ValueError) as error:
            raise ConfigError(
                f"{named('TRES_CSV')}: {self.path} cannot be written: {plainly(error, named=True)}"
            ) from None

    def close_spider(self) -> None:
        if self._file is None:
            return
        try:
            self._file.close()
            self._write_domains()
        except OSError as error:
            self.fail(error)
            return
        logger.info("Wrote the tables %s and %s", self.path, self.domains_path.name)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, RelevantPage) and self._file is not None and item.url not in self._urls:
            row = row_of(item)
            try:
                self.append(_line(row, self._columns))
                self._note(row)
                if monotonic() > self._due:
                    self._write_domains()
            except OSError as error:
                self.fail(error)
        return item

    def rewrite(
        self, judge: Callable[[Mapping[str, str]], float | None], late: Iterable[RelevantPage]
    ) -> None:
        """Write the tables again with the P(relevant) of now, and with late pages.

        A row for which `judge` returns None is left out.
        """
        with self.path.open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            columns, rows = list(reader.fieldnames or self._columns), list(reader)
        judged = [(row, judge(row)) for row in rows]
        kept = [row | {"probability": f"{p:.4f}"} for row, p in judged if p is not None]
        held = {row["url"] for row in kept}
        kept += [row_of(item) for item in late if item.url not in held]
        self._urls, self._domains = set(), {}
        with whole_file(self.path) as file:
            file.write(csv_line(columns).encode())
            for row in kept:
                file.write(_line(row, columns).encode())
                self._note(row)
        self._write_domains()

    def _resume(self) -> None:
        """Read the rows of an interrupted crawl; drop an incomplete last line."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]  # a kill may cut inside a character
        rows = csv.DictReader(StringIO(whole.decode(), newline=""))
        if whole and list(rows.fieldnames or ()) != self._columns:
            raise TresError(f"it holds another table: give another {typed('output')}")
        for row in rows:
            self._note(row)
        if self._job is None:
            self._before = self.pages()
        if whole != content:
            self.path.write_bytes(whole)

    def pages(self) -> dict[str, int]:
        """Return the pages fetched of each domain, as the table says; raise TresError or OSError.

        It is empty if there is no table.
        """
        if not self.domains_path.exists():
            return {}
        with self.domains_path.open(encoding="utf-8", newline="") as lines:
            domains = csv.DictReader(lines)
            if list(domains.fieldnames or ()) != [*DOMAIN_COLUMNS]:
                raise TresError(f"{self.domains_path.name} is another table")
            return {row["domain"]: int(row["pages"]) for row in domains}

    def _begin(self) -> None:
        """Write the head of a table, and the rows of pages that the output had before it."""
        assert self._file is not None
        self._file.write(csv_line(self._columns))
        if not self._output.is_file():
            return
        with self._output.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                row = _row_of_line(line)
                if row is not None and row["url"] not in self._urls:
                    self._file.write(_line(row, self._columns))
                    self._note(row)
        if self._job is None:  # at least these
            self._before = {name: int(row["relevant"]) for name, row in self._domains.items()}

    def _note(self, row: dict[str, str]) -> None:
        self._urls.add(row["url"])
        name, seen = row["domain"], row["fetched_at"]
        domain = self._domains.setdefault(
            name,
            {
                "domain": name,
                "new": row["new_domain"],
                "pages": "",
                "relevant": "0",
                "first_seen": seen,
                "last_seen": seen,
                "first_url": row["final_url"],
            },
        )
        domain["relevant"] = str(int(domain["relevant"]) + 1)
        domain["last_seen"] = max(domain["last_seen"], seen)

    def _write_domains(self) -> None:
        start = monotonic()
        with whole_file(self.domains_path) as file:
            file.write(csv_line(DOMAIN_COLUMNS).encode())
            for name, row in self._domains.items():
                row["pages"] = str(self._before.get(name, 0) + self._pages_of(name))
                file.write(csv_line(row.values()).encode())
        end = monotonic()
        self._due = end + max(RARELY, (end - start) / SHARE)


def _columns(topics: Sequence[str]) -> list[str]:
    return [*COLUMNS, *map(SCORE.format, topics if len(topics) > 1 else ())]


def _is_continued(output: Path, topics: Sequence[str]) -> bool:
    """Return whether an output holds pages, and the table beside it is one of such pages."""
    table = beside(output, PAGES)
    if not (output.is_file() and output.stat().st_size and table.is_file()):
        return False
    with table.open(encoding="utf-8", errors="replace") as lines:
        return next(lines, "") == csv_line(_columns(topics))


def row_of(item: RelevantPage | SimpleNamespace) -> dict[str, str]:
    """Return the cells of a page by column name, with its score for each topic of several."""
    cells = {
        **{name: str(getattr(item, name)) for name in COLUMNS if name != "found_on"},
        "new": str(item.new).lower(),
        "new_domain": str(item.new_domain).lower(),
        "probability": f"{item.probability:.4f}",
        "found_on": item.path[-2] if len(item.path) > 1 else "",
    }
    found: dict[str, float] = getattr(item, "scores", {})
    scores = {SCORE.format(name): f"{value:.4f}" for name, value in found.items()}
    return {name: cells[name] for name in COLUMNS} | scores


def _row_of_line(line: str) -> dict[str, str] | None:
    """Return the row of a page from its JSON line, None if it is something else."""
    try:
        return row_of(SimpleNamespace(**json.loads(line)))
    except (ValueError, TypeError, AttributeError):
        return None


def _line(row: Mapping[str, str], columns: Iterable[str]) -> str:
    return csv_line(row.get(name) or "" for name in columns)


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of CSV without formulas, line breaks and control characters in its cells."""
    text = StringIO()
    plain = (printable(" ".join(cell.split())) for cell in cells)
    safe = [f"'{cell}" if cell.startswith(FORMULA) else cell for cell in plain]
    csv.writer(text, lineterminator="\n").writerow(safe)
    return text.getvalue()
