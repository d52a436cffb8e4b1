"""Processor time of archiving a page, in the thread of the crawl and in the writing thread.

    python benchmarks/archive.py [--pages 2000] [--kilobytes 4 40]

Prints and writes results/archive.md: microseconds of processor time, which
depend little on other programs. Bodies are random words, which compress less than sentences.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from scrapy import Request
from scrapy.http import HtmlResponse

from tres_scrapy.export.archive import exchange_of
from tres_scrapy.export.warc import ArchiveWriter, exchange_records, note_record

RESULTS = Path(__file__).parent / "results" / "archive.md"
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Server": "web",
    "Date": "Mon, 01 Jan 2024 00:00:00 GMT",
    "Cache-Control": "max-age=600",
    "Set-Cookie": "session=1",
}
VERDICT = {"relevant": "true", "probability": "0.7500", "language": "en", "depth": "3"}
WORDS = [f"{a}{b}{c}" for a in ("so", "pe", "li", "ka") for b in "aeiou" for c in ("n", "st", "r")]


def pages(count: int, kilobytes: int) -> list[tuple[Request, HtmlResponse]]:
    """Return requests and their answers, each with a different body."""
    draw = random.Random(0)
    found = []
    for number in range(count):
        url = f"http://host{number % 50}.test/{number}"
        body = " ".join(draw.choices(WORDS, k=300 * kilobytes)).encode()[: 1000 * kilobytes]
        found.append((Request(url), HtmlResponse(url, headers=HEADERS, body=body)))
    return found


async def archived(path: Path, crawled: list[tuple[Request, HtmlResponse]]) -> tuple[float, float]:
    """Archive pages with their verdicts; return seconds of this thread and the writing thread."""
    before = time.process_time()
    writer, own = ArchiveWriter(path), 0.0
    for request, response in crawled:
        start = time.thread_time()
        exchange = exchange_of(request, response)
        writer.put(partial(exchange_records, exchange), len(exchange.body))
        writer.put(partial(note_record, exchange.url, VERDICT, exchange.id))
        own += time.thread_time() - start
        while writer.full:
            await asyncio.sleep(0.05)
    writer.close()
    return own, time.process_time() - before - own


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--kilobytes", type=int, nargs="+", default=[4, 40])
    given = parser.parse_args()
    lines = [
        "# What the archive takes of a page",
        "",
        f"`python benchmarks/archive.py`: {given.pages} pages, processor time of each.",
        "",
        "| body | the crawl's own thread | the writing thread |",
        "|---|---|---|",
    ]
    for kilobytes in given.kilobytes:
        crawled = pages(given.pages, kilobytes)
        with TemporaryDirectory() as folder:
            own, others = asyncio.run(archived(Path(folder, "a.warc.gz"), crawled))
        cells = (f"{1e6 * seconds / given.pages:.0f} µs" for seconds in (own, others))
        lines.append(f"| {kilobytes} KB | {' | '.join(cells)} |")
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
