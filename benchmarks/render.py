"""Measure the cost of rendering: memory over many pages, and speed of never, auto and always.

    python benchmarks/render.py [--pages 500] [--rate-pages 60] [--output FILE]

A local proxy serves a web of 20 hosts. Half of them serve complete pages; on the others, a script
loads text and links. One crawl renders every page, while the memory of the crawler, the judge
process, the browser's driver and the browser is measured as PSS, which counts shared memory once.
Then the same pages are crawled in each mode, one crawl at a time, and again in reverse order.
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
INTERVAL = 1.0  # seconds between measurements of memory
MODES = ("never", "auto", "always")
PARTS = ("crawler", "judge", "driver", "browser")


class Reading(NamedTuple):
    """The memory of each part in megabytes after a number of rendered pages."""

    rendered: int
    megabytes: dict[str, float]


class Web:
    """A web in which every second host needs scripts; it counts the pages requested."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.asked = 0

    def answer(self, url: str) -> tuple[str, str] | None:
        """Return content type and text of a page, or None for an unknown URL."""
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
    parser.add_argument("--pages", type=int, default=500, help="for the memory test; 0: skip it")
    parser.add_argument("--rate-pages", type=int, default=60)
    parser.add_argument("--output", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    lines: list[str] = []
    if options.pages:
        readings: list[Reading] = []
        crawl("always", options.pages, readings)
        lines = _tell([*memory_table(readings), ""], options.output)
    seconds = dict.fromkeys(MODES, 0.0)
    for mode in (*MODES, *reversed(MODES)):  # so that other load affects all modes alike
        seconds[mode] += crawl(mode, options.rate_pages)
    _tell([*lines, *rate_table(seconds, options.rate_pages)], options.output)


def crawl(mode: str, pages: int, readings: list[Reading] | None = None) -> float:
    """Crawl the seed and a number of pages; return the seconds without the start-up."""
    web = Web(pages + pages // 5)  # spare pages, in case some fail
    server = _serve(web)
    with TemporaryDirectory() as directory:
        process = subprocess.Popen(  # noqa: S603 - our own crawl
            [
                sys.executable,
                "-m",
                "scrapy",
                "crawl",
                "tres",
                "-a",
                "topic=food",
                "-a",
                "seed=http://seed.test/",
                "-a",
                f"pages={pages + 1}",
                "-a",
                f"render={mode}",
                "-a",
                f"output={directory}/pages.jsonl",
                "-s",
                "DOWNLOAD_DELAY=0",
                "-s",
                "CONCURRENT_REQUESTS_PER_DOMAIN=4",
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
    """Return the memory per hundred rendered pages, and the last relative to the first."""
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
    """Return pages per second relative to `never`."""
    lines = [
        f"| mode, {pages + 1} pages, half of them applications | rate / rate of never |",
        "|---|---|",
    ]
    return lines + [f"| {mode} | {seconds['never'] / seconds[mode]:.2f} |" for mode in MODES]


def _tell(lines: list[str], output: Path | None) -> list[str]:
    """Print the results so far, and write them to the file if one is given."""
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
    """Return the memory of the crawler and its child processes, by part."""
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
    """Return the part that a process belongs to, "" if it is not part of the crawl."""
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
