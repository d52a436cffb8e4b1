"""Measure what rendering costs: memory over many pages, and the rate of never, auto and always.

    python benchmarks/render.py [--pages 500] [--rate-pages 60] [--output FILE]

A web of 20 hosts is served by a proxy of this machine: on half of them a page is there as it is
fetched, on the others its script fetches text and links. One crawl renders every page, and the
memory of the crawler, of the process that judges pages, of the browser's driver and of the browser
is read as it goes: PSS, where what processes share counts once. Then the same pages are crawled
in each mode, one crawl at a time, and again in the reverse order.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

HOSTS = 20
WORDS = ("soup", "recipe", "onion", "butter", "cream", "pepper", "garlic", "bread", "flour", "salt")
SCRIPT = """fetch("/api" + location.pathname).then(answer => answer.json()).then(data => {
  document.title = data.title;
  document.getElementById("app").innerHTML = data.html;
});"""
SHELL = '<title>Loading</title><div id="app"></div><script src="/app.js"></script>'
INTERVAL = 1.0  # seconds between two readings of the memory
MODES = ("never", "auto", "always")
PARTS = ("crawler", "judge", "driver", "browser")


class Reading(NamedTuple):
    """The memory of each part in megabytes, after so many renderings."""

    rendered: int
    megabytes: dict[str, float]


class Web:
    """Hosts of which every second one is an application; counts the pages it was asked for."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.asked = 0

    def answer(self, url: str) -> tuple[str, str] | None:
        """Return type and text of an answer; None if there is none."""
        parts = urlsplit(url)
        number = int(re.sub(r"\D", "", parts.hostname or "") or 0)
        kind = parts.path.split("/")[1]
        if kind == "app.js":
            return "text/javascript", SCRIPT
        page = re.search(r"\d+$", parts.path)
        if parts.hostname == "seed.test" and parts.path == "/":
            urls = [f"http://h{i % HOSTS}.test/{i}" for i in range(self.pages)]
            return "text/html", _html(
                0, "".join(f'<p><a href="{url}">{url}</a></p>' for url in urls)
            )
        if page is None:
            return None
        html = _html(int(page[0]), f'<a href="/{page[0]}">itself</a>' * 4)
        if kind == "api":
            return "application/json", json.dumps({"title": f"soup {page[0]}", "html": html})
        self.asked += 1
        return "text/html", SHELL if number % 2 else html


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=500, help="0: no memory")
    parser.add_argument("--rate-pages", type=int, default=60)
    parser.add_argument("--output", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    lines: list[str] = []
    if options.pages:
        readings: list[Reading] = []
        crawl("always", options.pages, readings)
        lines = _tell([*memory_table(readings), ""], options.output)
    seconds = dict.fromkeys(MODES, 0.0)
    for mode in (*MODES, *reversed(MODES)):  # what else the machine does meets them alike
        seconds[mode] += crawl(mode, options.rate_pages)
    _tell([*lines, *rate_table(seconds, options.rate_pages)], options.output)


def crawl(mode: str, pages: int, readings: list[Reading] | None = None) -> float:
    """Crawl so many pages and the seed; return the seconds of the crawl, its start left out."""
    web = Web(pages + pages // 5)  # some more, should one fail
    server = _serve(web)
    with TemporaryDirectory() as directory:
        process = subprocess.Popen(  # noqa: S603 - our own crawl
            [
                *(sys.executable, "-m", "scrapy", "crawl", "tres", "-a", "topic=food"),
                *("-a", "seed=http://seed.test/", "-a", f"pages={pages + 1}"),
                *("-a", f"render={mode}", "-a", f"output={directory}/pages.jsonl"),
                *("-s", "DOWNLOAD_DELAY=0", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=4"),
            ],
            env=os.environ | {"http_proxy": f"http://127.0.0.1:{server.server_port}"},
            cwd=Path(__file__).parents[1],
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=_watch, args=(process, web, readings), daemon=True).start()
        log = process.communicate()[1]
    server.shutdown()
    found = re.search(r"'elapsed_time_seconds': ([\d.]+)", log)
    if process.returncode or found is None:
        raise RuntimeError(log[-2_000:])
    return float(found[1])


def memory_table(readings: list[Reading]) -> list[str]:
    """Return the memory by hundreds of renderings, and how the last compares with the first."""
    last = max(reading.rendered for reading in readings)
    hundreds = [
        [reading for reading in readings if start < reading.rendered <= start + 100]
        for start in range(0, last // 100 * 100, 100)
    ]
    lines = [
        "| renderings | " + " | ".join(f"{part}, MB" for part in PARTS) + " |",
        "|---" * (1 + len(PARTS)) + "|",
    ]
    means = [{part: fmean(r.megabytes[part] for r in each) for part in PARTS} for each in hundreds]
    for i, mean in enumerate(means):
        figures = " | ".join(f"{mean[part]:.0f}" for part in PARTS)
        lines.append(f"| {100 * i + 1} to {100 * i + 100} | {figures} |")
    ratios = " | ".join(f"{means[-1][part] / means[0][part]:.2f}" for part in PARTS)
    return [*lines, f"| last hundred / first | {ratios} |"]


def rate_table(seconds: dict[str, float], pages: int) -> list[str]:
    """Return pages a second as shares of what `never` does."""
    lines = [
        f"| mode, {pages + 1} pages, half of them applications | rate / rate of never |",
        "|---|---|",
    ]
    return lines + [f"| {mode} | {seconds['never'] / seconds[mode]:.2f} |" for mode in MODES]


def _tell(lines: list[str], output: Path | None) -> list[str]:
    """Print what is known by now, and write it to a file if there is one."""
    print("\n".join(lines), flush=True)
    if output is not None:
        output.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return lines


def _html(number: int, more: str) -> str:
    words = [WORDS[(number * 7 + i * (number % 5 + 1)) % len(WORDS)] for i in range(250)]
    own = [
        f"{WORDS[i % len(WORDS)]}{chr(97 + number % 26)}{chr(97 + number // 26 % 26)}"
        for i in range(60)
    ]
    return f"<h1>soup {number}</h1><p>{' '.join(words + own)}</p>{more}"


def _serve(web: Web) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            kind, text = web.answer(self.path) or ("text/plain", "")
            body = text.encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "max-age=600")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _watch(process: subprocess.Popen[str], web: Web, readings: list[Reading] | None) -> None:
    if readings is None:
        return
    ended = threading.Event()
    while process.poll() is None:
        megabytes = _megabytes(process.pid)
        if megabytes["browser"] and web.asked:
            readings.append(Reading(web.asked, megabytes))
            print(readings[-1], file=sys.stderr, flush=True)
        ended.wait(INTERVAL)


def _megabytes(crawler: int) -> dict[str, float]:
    """Return the memory of the crawler and of what it has started, by part."""
    found = dict.fromkeys(PARTS, 0.0)
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and (part := _part(process, crawler)):
            try:
                lines = (process / "smaps_rollup").read_text()
            except OSError:  # it has ended
                continue
            if pss := re.search(r"^Pss: +(\d+) kB", lines, re.MULTILINE):
                found[part] += int(pss[1]) / 1024
    return found


def _part(process: Path, crawler: int) -> str:
    """Return which part a process is; "" if the crawler has not started it."""
    number = int(process.name)
    try:
        command = (process / "cmdline").read_bytes().replace(b"\0", b" ")
        while number not in {0, crawler}:
            fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2]
            number = int(fields.split()[1])
    except OSError:  # it has ended
        return ""
    if number != crawler:
        return ""
    if process.name == str(crawler):
        return "crawler"
    if b"tres_scrapy.topic" in command:
        return "judge"
    return "driver" if b"playwright" in command.partition(b" ")[0] else "browser"


if __name__ == "__main__":
    main()
