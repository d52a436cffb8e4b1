"""Time and quality of parsing a page for title, text, language and links.

    python benchmarks/text.py --data FILE [--every 10]

FILE holds JSON lines with html and url. Prints and writes results/text.md: CPU milliseconds a page
compared with a bare parse and with trafilatura (`pip install trafilatura lxml_html_clean`), and the
languages found. Quality is measured against trafilatura's main text on every tenth page.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import TypeVar

import trafilatura
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.page.document_file import read_records
from tres_scrapy.page.language import detect_language
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import Page, read_page

RESULTS = Path(__file__).parent / "results"
MIN_WORDS = 30  # a shorter reference is not used
T = TypeVar("T")


def timed(action: Callable[[], T], times: list[float]) -> T:
    """Return the result of `action` and append its CPU milliseconds."""
    start = process_time()
    result = action()
    times.append(1000 * (process_time() - start))
    return result


def overlap(found: str, yardstick: str) -> tuple[float, float, float] | None:
    """Return precision, recall and F1 of the words found, None if the reference is too short."""
    ours, theirs = Counter(tokenise(found)), Counter(tokenise(yardstick))
    if theirs.total() < MIN_WORDS:
        return None
    common = (ours & theirs).total()
    precision, recall = common / max(1, ours.total()), common / theirs.total()
    return precision, recall, 2 * common / (ours.total() + theirs.total())


def everything(html: str) -> str:
    """Return all visible text, boilerplate included."""
    tree = LexborHTMLParser(html.encode("utf-8", "replace"))
    for node in reversed(tree.css("script, style, noscript, template, svg")):
        node.decompose()
    return tree.body.text(separator=" ") if tree.body is not None else ""


def read(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the HTML and the URL of each page."""
    for record in read_records(path):
        if isinstance(record, dict):
            yield record["html"], str(record.get("url") or "")


def time_row(name: str, times: list[float]) -> str:
    """Return a row of the table of times."""
    p95 = statistics.quantiles(times, n=20)[-1]
    return f"| {name} | {statistics.mean(times):.2f} | {p95:.2f} | {max(times):.1f} |"


def quality_row(name: str, found: list[tuple[float, float, float]]) -> str:
    """Return a row of the table of quality."""
    precision, recall, f1 = (statistics.mean(column) for column in zip(*found, strict=True))
    return f"| {name} | {precision:.3f} | {recall:.3f} | {f1:.3f} |"


def report(pages: list[tuple[str, str]], every: int) -> Iterator[str]:
    """Measure, and yield the lines of the report."""
    detect_language("the model is read once, which is not the price of a page" * 2)
    bare: list[float] = []
    ours: list[float] = []
    theirs: list[float] = []
    read_pages: list[Page] = []
    quality: dict[str, list[tuple[float, float, float]]] = {"all visible text": [], "read_page": []}
    for number, (html, url) in enumerate(pages):
        data = html.encode("utf-8", "replace")
        timed(lambda data=data: LexborHTMLParser(data), bare)  # type: ignore[misc]
        page = timed(lambda html=html, url=url: read_page(html, url), ours)  # type: ignore[misc]
        read_pages.append(page)
        if number % every == 0:
            main = timed(lambda html=html: trafilatura.extract(html), theirs)  # type: ignore[misc]
            for name, text in (("all visible text", everything(html)), ("read_page", page.text)):
                if figures := overlap(text, main or ""):
                    quality[name].append(figures)
    yield from ("| CPU ms a page | mean | 95 % | max |", "|---|---|---|---|")
    yield time_row("bare parse", bare)
    yield time_row("read_page: title, text, links, language", ours)
    yield time_row(f"trafilatura: main text, every {every}th page", theirs)
    yield f"\nread_page takes {sum(ours) / sum(bare):.1f} times a bare parse. Words found against"
    yield f"those of trafilatura, {len(quality['read_page'])} pages of {MIN_WORDS} words or more:\n"
    yield from ("| | precision | recall | F1 |", "|---|---|---|---|")
    yield from (quality_row(name, found) for name, found in quality.items())
    yield from languages(read_pages)


def languages(pages: list[Page]) -> Iterator[str]:
    """Yield the lines on the languages of the pages."""
    found = Counter(page.language or "not told" for page in pages)
    foreign = found.total() - found["en"] - found["not told"]
    counts = ", ".join(f"{language} {count}" for language, count in found.most_common())
    links = statistics.mean(len(page.links) for page in pages)
    yield f"\nLanguages: {counts}. Said to be not English: {foreign / len(pages):.2%}."
    yield f"Links a page: {links:.0f}."


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=10)
    options = parser.parse_args()
    pages = list(read(options.data))
    title = f"# Reading a page\n\n{len(pages)} pages of {options.data.name}, one thread.\n"
    text = "\n".join([title, *report(pages, options.every), ""])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "text.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
