"""A web of recorded pages: each URL returns its recorded answer."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from fastwarc.warc import WarcRecord, WarcRecordType
from w3lib.url import safe_url_string

from tres_scrapy.lab.webs.warc_file import Skip, StoredRecord, read_block, scan
from tres_scrapy.lab.webs.web import TEXT, Answer
from tres_scrapy.url.message import TresError, counted, plainly, plural

HOPS: Final = 10  # most redirects followed to find a label
SHOWN: Final = 60  # letters shown of a topic, which a file may choose
LARGEST: Final = 8 * 1024 * 1024  # bytes of a body, compressed and decompressed, as in the crawl
ENDINGS: Final = (".warc", ".warc.gz")
KINDS: Final = ("page", "redirect", "soft404", "missing", "error", "robots", "other")
PAGE, REDIRECT, SOFT, MISSING, ERROR, ROBOTS, OTHER = range(len(KINDS))
MOVED: Final = {301, 302, 303, 307, 308}
PORTS: Final = {"http": 80, "https": 443}
BLANK: Final = re.compile(rb"\r?\n\r?\n")  # behind the head of a response
STATUS: Final = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})")
BROKEN: Final = (OSError, EOFError, ValueError, KeyError)

Headers = tuple[tuple[str, str], ...]


class RecordedWeb:
    """The responses in WARC files by URL; the last response to a URL counts, any other URL is 404.

    `data` is a file, or a folder whose files are read in the order of their names. Raise OSError
    or ValueError if they cannot be read or have no response. A page is relevant if the crawl that
    recorded it, or the file of labels, says so.
    """

    https = True

    def __init__(self, data: Path, labels: Path | None = None) -> None:
        self.name = f"recorded-{data.name}"
        self.files = _files(data)
        self.skipped: Counter[str] = Counter()  # by reason
        self.seeds: tuple[str, ...] = ()
        self.topic = ""  # of the crawl that recorded it, if the file names it
        self.slots: dict[str, int] = {}  # by URL as `key` returns it
        self.targets: dict[int, str] = {}  # of redirects, by slot
        self._labels_read = 0
        self._file, self._offset = array("H"), array("q")
        self._kind, self._relevant = array("B"), array("B")
        for number, path in enumerate(self.files):
            for found in scan(path):
                self._note(number, found)
        if not self.slots:
            raise TresError(f"{data} has no response that can be served{self._faults()}")
        if labels is not None:
            self._read_labels(labels)
        if not self.seeds:
            self.seeds = (next((url for url in self.slots if "/robots.txt" not in url), ""),)

    @property
    def urls(self) -> Sequence[str]:
        """The recorded URLs."""
        return list(self.slots)

    @property
    def labelled(self) -> bool:
        """Whether any page has a label."""
        return bool(self._labels_read)

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for the user about the recording, shown before the crawl."""
        pages = [url for url, _ in self.pages()]
        hosts = {urlsplit(url).netloc for url in pages}
        notes = [
            f"{len(self.slots)} recorded {plural(len(self.slots), 'URL')}, "
            f"{counted(len(pages), 'page')} of {len(hosts)} "
            f"{plural(len(hosts), 'host')}"
            f"{self._faults()}"
        ]
        if self.topic:
            notes.append(f"Recorded by a crawl on {self.topic[:SHOWN]!r}")
        if not self.labelled:
            notes.append("No page has a label, so no page counts as relevant: give labels")
        return tuple(notes)

    def answer(self, url: str) -> Answer:
        """Return the recorded answer, or 404 of kind `unrecorded` if the URL was not recorded."""
        slot = self.slots.get(key(url))
        if slot is None:
            return Answer(404, b"this was not recorded\n", TEXT, "unrecorded", False, "recorded")
        try:
            status, headers, body = self.read(slot)
        except BROKEN as error:
            return Answer(502, f"{plainly(error)}\n".encode(), TEXT, "error", False, "recorded")
        if status < 200:
            return Answer(502, b"only a part of an answer was recorded\n", TEXT, "error")
        kind, relevant = KINDS[self._kind[slot]], self.relevant(slot)
        return Answer(status, body, headers, kind, relevant, "recorded")

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL, after redirects, is a relevant page."""
        return [self._label(url) for url in urls]

    def relevant(self, slot: int) -> bool:
        """Return whether a page was judged or labelled relevant."""
        return self._kind[slot] == PAGE and bool(self._relevant[slot])

    def read(self, slot: int) -> tuple[int, Headers, bytes]:
        """Return status, headers and decompressed body; raise OSError or ValueError if damaged."""
        if self._offset[slot] < 0:
            raise TresError("the recorded crawl got no answer")
        path = self.files[self._file[slot]]
        return _response(read_block(path, self._offset[slot], LARGEST))

    def pages(self) -> Iterator[tuple[str, int]]:
        """Return URL and slot of every page, in the order of their first recording."""
        return ((url, slot) for url, slot in self.slots.items() if self._kind[slot] == PAGE)

    def _faults(self) -> str:
        """Return how many records were skipped and why, as the end of a sentence."""
        kinds = ", ".join(f"{reason} ({count})" for reason, count in self.skipped.most_common())
        return f"; skipped: {kinds}" if kinds else ""

    def _label(self, url: str) -> bool:
        for _ in range(HOPS + 1):
            slot = self.slots.get(key(url))
            if slot is None or slot not in self.targets:
                return slot is not None and self.relevant(slot)
            url = self.targets[slot]
        return False

    def _note(self, number: int, found: StoredRecord | Skip) -> None:
        if isinstance(found, Skip):
            self.skipped[found.reason] += 1
            return
        kind = found.fields.get("warc-type", "")
        if kind == "response":
            self._add(number, found)
        elif kind == "metadata":
            self._note_verdict(found)
        elif kind == "warcinfo" and not self.seeds:
            facts = _fields(found.start)
            self.seeds, self.topic = tuple(facts.get("seeds", "").split()), facts.get("topic", "")
        elif kind in {"revisit", "continuation"}:  # the earlier response stays valid
            self.skipped[f"{kind} record"] += 1

    def _add(self, number: int, found: StoredRecord) -> None:
        status = STATUS.match(found.start)
        blank = BLANK.search(found.start)
        if status is None or blank is None:
            self.skipped["no HTTP response"] += 1
        elif found.length > LARGEST:
            self.skipped[f"over {LARGEST} bytes"] += 1
        else:
            url = key(found.fields.get("warc-target-uri", "").strip("<>"))  # as wget writes it
            headers = _fields(found.start[: blank.start()])
            kind = _kind(url, int(status[1]), headers, found.start[blank.end() :])
            slot = self._put(url, number, found.offset, kind)
            if kind == REDIRECT:
                self.targets[slot] = urljoin(url, headers["location"])

    def _put(self, url: str, number: int, offset: int, kind: int) -> int:
        slot = self.slots.setdefault(url, len(self.slots))
        if slot == len(self._offset):
            for column in (self._file, self._offset, self._kind, self._relevant):
                column.append(0)
        self._file[slot], self._offset[slot], self._kind[slot] = number, offset, kind
        self.targets.pop(slot, None)
        return slot

    def _note_verdict(self, found: StoredRecord) -> None:
        """Apply what a crawl noted about a response or a failed fetch."""
        fields, url = _fields(found.start), key(found.fields.get("warc-target-uri", ""))
        slot, failure = self.slots.get(url), fields.get("failure")
        if slot is None and failure not in {None, "robots"}:
            self._put(url, 0, -1, ERROR)
        elif slot is not None and failure == "soft_404":
            self._kind[slot] = SOFT
        elif slot is not None and "relevant" in fields:
            self._judge(slot, fields["relevant"] == "true")

    def _judge(self, slot: int, relevant: bool) -> None:
        self._relevant[slot] = relevant
        self._labels_read += 1

    def _read_labels(self, path: Path) -> None:
        """Read labels from lines: the URL of a relevant page, or JSON with url and relevant."""
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = json.loads(line) if line.startswith("{") else {"url": line.strip()}
                    urls = [row["url"], row.get("final_url", row["url"])]
                    relevant = bool(row.get("relevant", True))
                except (KeyError, ValueError, AttributeError):
                    raise TresError(f"{path} line {number}: no label in {line[:80]!r}") from None
                for url in filter(None, urls):
                    if (slot := self.slots.get(key(url))) is not None:
                        self._judge(slot, relevant)


def key(url: str) -> str:
    """Return the form of a URL used for look-ups: details that no server sees are normalised."""
    try:
        parts = urlsplit(safe_url_string(url))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url
    place = f"[{host}]" if ":" in host else host
    place += "" if port in {None, PORTS.get(parts.scheme)} else f":{port}"
    return urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))


def _files(data: Path) -> list[Path]:
    if data.is_file():
        return [data]
    files = sorted(path for path in data.glob("*") if path.name.endswith(ENDINGS))
    if not files:
        raise TresError(f"no WARC file at {str(data)!r}: give one, or a folder with *.warc.gz")
    return files


def _fields(block: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in block.decode("utf-8", "replace").splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def _kind(url: str, status: int, headers: dict[str, str], body: bytes) -> int:
    if url.endswith("/robots.txt") and urlsplit(url).path == "/robots.txt":
        return ROBOTS
    if status in MOVED and headers.get("location"):
        return REDIRECT
    if status != 200:
        return MISSING if status in {404, 410} else ERROR
    kind = headers.get("content-type", "text/html" if body.lstrip().startswith(b"<") else "")
    return PAGE if kind.partition(";")[0].strip().lower() in HTML_TYPES else OTHER


HTML_TYPES: Final = {"text/html", "application/xhtml+xml"}
# Headers about the encoding, which is undone here, and about the old connection
UNDONE: Final = {
    "content-encoding",
    "transfer-encoding",
    "content-length",
    "connection",
    "keep-alive",
    "upgrade",
    "trailer",
    "te",
}


def _response(block: bytes) -> tuple[int, Headers, bytes]:
    record = WarcRecord()
    record.init_headers(WarcRecordType.response, content_length=len(block))
    record.set_bytes_content(block)
    record.is_http = True
    record.parse_http(auto_decode="all")
    body = record.reader.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise TresError(f"over {LARGEST} bytes, decompressed")
    headers = record.http_headers
    kept = ((name, value) for name, value in headers.to_tuples() if name.lower() not in UNDONE)
    return headers.status_code or 0, tuple(kept), body
