"""Documents that are no HTML: a PDF as a page with title, text and links."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.language import detect_language
from tres_scrapy.page.place import WORDS, Place, tokenise
from tres_scrapy.page.robots import US, Permission, permission_of
from tres_scrapy.page.text import (
    CONTEXT_WORDS,
    LIMITS,
    MAX_TITLE_LENGTH,
    Link,
    Page,
    bounded,
    may_be_page,
    resolve,
)
from tres_scrapy.url.message import plainly

if TYPE_CHECKING:
    from collections.abc import Sequence

PDF: Final = "application/pdf"
PATIENCE: Final = 5.0  # seconds for one PDF
LENGTH: Final = 8  # bytes of the number before a PDF
MAX_FIRST_WORDS: Final = 100  # characters of the text that stand in for a missing title


class DocumentError(ValueError):
    """Raised when a document cannot be read; the message gives the reason."""


class PdfReader:
    """Reads PDFs in a separate process, which is started with the first one.

    A PDF that crashes the process, fills its memory or takes longer than `patience` seconds ends
    it; the next PDF starts another.
    """

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, body: bytes) -> dict[str, Any]:
        """Return the title, date, pages and links of a PDF; raise DocumentError if it is broken."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            try:
                self._process = start_module("tres_scrapy.page.pdf", str(self._patience))
            except OSError as error:
                msg = f"the process that reads PDFs does not start: {plainly(error)}"
                raise DocumentError(msg) from None
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        line = b""
        with suppress(OSError):  # the process has ended
            process.stdin.write(len(body).to_bytes(LENGTH) + body)
            process.stdin.flush()
            line = process.stdout.readline()
        if not line.endswith(b"\n"):
            self.close()
            raise DocumentError("it crashed the reader, or took too much time or memory")
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise DocumentError(said["error"])
        return said

    def close(self) -> None:
        """End the process, if there is one; it has no state."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


PDFS: Final = PdfReader()  # of this process


def read_document(
    said: dict[str, Any],
    url: str,
    limits: ReadingLimits = LIMITS,
    *,
    robots: Sequence[str] = (),
    crawler: str = US,
) -> Page:
    """Return the page of what a PdfReader read of a PDF, with all that is known of its links.

    Without a title, its first words stand in for it. `robots` and `crawler` are as in `read_page`.
    """
    permission = permission_of((), robots, crawler) if limits.obey else Permission()
    text = " ".join(filter(None, said["pages"]))[: limits.html]
    title = said["title"][:MAX_TITLE_LENGTH] or shorten(text[:MAX_TITLE_LENGTH], MAX_FIRST_WORDS)
    links: dict[str, Link] = {}
    contexts, places = [], []
    for target, anchor, before, after in said["links"] if permission.follow else ():
        found = resolve(url, target.strip())
        if found is None or not may_be_page(found) or found in links:
            continue
        if len(links) == limits.links:
            break
        links[found] = Link(found, anchor[: limits.anchor])
        first, last = tokenise(before), tokenise(after)
        contexts.append(" ".join(first[-CONTEXT_WORDS:] + last[:CONTEXT_WORDS]))
        places.append(Place((*first[-WORDS:], *last[:WORDS])))
    kept = bounded(links.values())
    return Page(
        url,
        title,
        text,
        kept,
        detect_language(text),
        contexts=tuple(contexts[: len(kept)]),
        places=tuple(places[: len(kept)]),
        links_cut=len(links) - len(kept),
        may_be_kept=permission.keep,
        content_type=PDF,
    )


def start_module(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Run one of our modules in a process with pipes; raise OSError if it cannot be started.

    Unless the environment says otherwise, libraries compute in one thread there, PyTorch too.
    """
    path = os.pathsep.join(place for place in sys.path if place)
    return subprocess.Popen(  # noqa: S603 - our own module, no shell
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path},
        **options,
    )
