"""Reads the title, text and links of a PDF: `python -m tres_scrapy.page.pdf SECONDS`.

This process reads PDFs from standard input, each after its length in eight bytes, and answers each
with a line of JSON. A hostile PDF can crash, fill or delay this process only: it ends if a PDF
takes more than SECONDS or its memory is full.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import sys
from contextlib import closing, suppress
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any, Final

import pypdfium2.raw as pdfium
from pypdfium2 import PdfDocument, PdfTextPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypdfium2 import PdfPage

LENGTH: Final = 8  # bytes of the number before a PDF
MEMORY: Final = 1 << 30  # bytes of address space; the largest known PDF of 8 MiB takes a fifth
WORK: Final = 2.0  # seconds of the processor after which no further page of a PDF is read
SECONDS: Final = 4.0  # the same, if the processor is busy with other things
PAGES: Final = 500
CHARACTERS: Final = 500_000
LINKS: Final = 1_000
AROUND: Final = 200  # characters before and after a link
# A word parted at the end of a line: PDFium writes U+0002 or U+FFFE for its hyphen.
HYPHEN: Final = re.compile("[\x02\xad\ufffe]\\s*")
NO_TITLE: Final = re.compile(r"^(?:Microsoft \w+ - |untitled$)", re.IGNORECASE)
Found = tuple[str, str, str, str]  # target, text, words before and words after a link


def read(body: bytes) -> dict[str, Any]:
    """Return what a PDF holds; `error` alone if it cannot be read or needs a password."""
    end, busy = monotonic() + SECONDS, process_time() + WORK
    parts: list[str] = []
    links: list[Found] = []
    try:
        with closing(PdfDocument(body)) as document:
            title, date = (_about(document, name) for name in ("Title", "CreationDate"))
            length = 0
            for number in range(min(len(document), PAGES)):
                with closing(document[number]) as page, closing(page.get_textpage()) as text:
                    count = min(text.count_chars(), CHARACTERS - length)
                    parts.append(_clean(text.get_text_range(0, count)))
                    links += _links(document, page, text, LINKS - len(links))
                length += len(parts[-1])
                if length >= CHARACTERS or process_time() > busy or monotonic() > end:
                    break
    except Exception as error:  # an untrusted file may raise any error
        return {"error": f"{type(error).__name__}: {error}"}
    title = NO_TITLE.sub("", _clean(title))
    return {"title": title, "date": date, "pages": parts, "links": links}


def _about(document: PdfDocument, name: str) -> str:
    try:
        return str(document.get_metadata_value(name))
    except ValueError:  # characters that do not exist
        return ""


def _links(document: PdfDocument, page: PdfPage, text: PdfTextPage, most: int) -> list[Found]:
    """Return the links of a page: those that can be clicked, then URLs in its text."""
    found: list[Found] = []
    for target, *box in _annotations(document, page):
        if len(found) == most:
            break
        words = _clean(text.get_text_bounded(*box))
        if found and found[-1][0] == target:  # a link that fills two lines has two boxes
            _, first, before, _ = found.pop()
            found.append((target, f"{first} {words}".strip(), before, _around(text, box)[1]))
            continue
        found.append((target, words, *_around(text, box)))
    known = {target for target, *_ in found}
    found += [each for each in _written(text) if each[0] not in known][: most - len(found)]
    return found


def _annotations(
    document: PdfDocument, page: PdfPage
) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield the targets of the links of a page and their boxes: left, bottom, right, top."""
    position, link, box = ctypes.c_int(0), pdfium.FPDF_LINK(), pdfium.FS_RECTF()
    while pdfium.FPDFLink_Enumerate(page, position, link):
        action = pdfium.FPDFLink_GetAction(link)
        size = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
        if size > 1 and pdfium.FPDFLink_GetAnnotRect(link, box):
            target = ctypes.create_string_buffer(size)
            pdfium.FPDFAction_GetURIPath(document, action, target, size)
            name = target.value.decode("utf-8", "replace")
            yield name, box.left, box.bottom, box.right, box.top


def _around(text: PdfTextPage, box: list[float]) -> tuple[str, str]:
    """Return the text before and after a box."""
    left, bottom, right, top = box
    middle, near = (bottom + top) / 2, (top - bottom) / 2
    first = text.get_index(left, middle, near, near)
    last = text.get_index(right, middle, near, near)
    if first is None or last is None:
        return "", ""
    return _slice(text, first - AROUND, first), _slice(text, last + 1, last + 1 + AROUND)


def _written(text: PdfTextPage) -> list[Found]:
    """Return the URLs that stand in the text."""
    links = pdfium.FPDFLink_LoadWebLinks(text)
    found = []
    try:
        for number in range(min(pdfium.FPDFLink_CountWebLinks(links), LINKS)):
            size = pdfium.FPDFLink_GetURL(links, number, None, 0)
            target = (ctypes.c_ushort * size)()
            pdfium.FPDFLink_GetURL(links, number, target, size)
            name = bytes(target).decode("utf-16-le", "replace").rstrip("\0\u2019\u201d")
            start, count = ctypes.c_int(), ctypes.c_int()
            pdfium.FPDFLink_GetTextRange(links, number, start, count)
            first, last = start.value, start.value + count.value
            before, after = _slice(text, first - AROUND, first), _slice(text, last, last + AROUND)
            found.append((name, _slice(text, first, last), before, after))
    finally:
        pdfium.FPDFLink_CloseWebLinks(links)
    return found


def _slice(text: PdfTextPage, first: int, last: int) -> str:
    first, last = max(0, first), min(last, text.count_chars())
    return _clean(text.get_text_range(first, last - first)) if last > first else ""


def _clean(text: str) -> str:
    return " ".join(HYPHEN.sub("", text).split())


def main() -> None:
    """Read the PDFs that arrive on standard input until it is closed."""
    with suppress(ValueError):  # some systems have no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(os.dup(1), "w") as output:
        os.dup2(2, 1)  # printed text must not mix with the answers
        while length := sys.stdin.buffer.read(LENGTH):
            body = sys.stdin.buffer.read(int.from_bytes(length))
            signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))  # ends even the library
            answer = json.dumps(read(body))
            signal.setitimer(signal.ITIMER_REAL, 0)
            output.write(answer + "\n")
            output.flush()


if __name__ == "__main__":
    main()
