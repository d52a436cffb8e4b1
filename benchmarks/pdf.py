"""Time and memory of reading PDFs, with PDFium as TRES uses it and with pypdf.

    python benchmarks/pdf.py FILE...

Prints and writes results/pdf.md. It needs `pip install pypdf`. Each file is read in a new process
by each library: CPU milliseconds without the start, peak memory with it.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import NamedTuple

RESULTS = Path(__file__).parent / "results"


class Reading(NamedTuple):
    """What a library found in a PDF: characters and links, in CPU ms and MB at most."""

    characters: int
    links: int
    time: float
    memory: float


def by_pdfium(body: bytes) -> tuple[int, int]:
    """Return the characters and links of a PDF as TRES reads it."""
    from tres_scrapy.page.pdf import read  # noqa: PLC0415 - counts in its own process only

    said = read(body)
    return sum(map(len, said["pages"])), len(said["links"])


def by_pypdf(body: bytes) -> tuple[int, int]:
    """Return the characters and clickable links of a PDF, read by pypdf."""
    from io import BytesIO  # noqa: PLC0415 - as above

    from pypdf import PdfReader  # noqa: PLC0415 - as above

    pages = PdfReader(BytesIO(body)).pages
    text = sum(len(" ".join(page.extract_text().split())) for page in pages)
    notes = [each.get_object() for page in pages for each in page.get("/Annots") or ()]
    return text, sum("/URI" in note.get("/A", {}) for note in notes)


def measured(library: Callable[[bytes], tuple[int, int]], path: Path) -> Reading:
    """Return a reading of a PDF, the first in its process."""
    with suppress(Exception):
        library(b"")  # imports it
    start = process_time()
    characters, links = library(path.read_bytes())
    time = 1000 * (process_time() - start)
    return Reading(
        characters, links, time, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    )


def report(paths: list[Path]) -> Iterator[str]:
    """Measure, and yield the lines of the report."""
    yield from (
        "| PDF | KB | | characters | links | CPU ms | MB |",
        "|---|---|---|---|---|---|---|",
    )
    for path in paths:
        for library in (by_pdfium, by_pypdf):
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                found = process.submit(measured, library, path).result()
            name = library.__name__.removeprefix("by_")
            yield (
                f"| {path.name} | {path.stat().st_size / 1000:.0f} | {name} | {found.characters:,} "
                f"| {found.links:,} | {found.time:.0f} | {found.memory:.0f} |"
            )


def main() -> None:
    """Read the arguments, measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+")
    lines = "\n".join(report(parser.parse_args().files))
    print(lines)
    head = "# Reading PDFs\n\n`python benchmarks/pdf.py FILE...`, one thread. PDFium stops after"
    head += " 1,000 links.\nIt also finds URLs in the text that cannot be clicked.\n\n"
    (RESULTS / "pdf.md").write_text(f"{head}{lines}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
