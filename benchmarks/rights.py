"""Counts what the pages of a recorded web say about their use: `python benchmarks/rights.py WARC`.

It prints how many pages have each signal, and the time of all that is done for rights: reading the
signals of the page and of its answer, adding those of its site, and writing them into the file of
the run.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from time import process_time

import numpy as np
from fastwarc.warc import ArchiveIterator, WarcRecordType
from scrapy import Request
from scrapy.http import HtmlResponse

from tres_scrapy.downloader.request import RIGHTS
from tres_scrapy.middlewares.page_rights import PageRights
from tres_scrapy.page.robots import US
from tres_scrapy.page.text import parse, read_page
from tres_scrapy.rights.signal import HEADERS, licences, meta_signals
from tres_scrapy.topic.pack import Judged

ANY = "http://a.test/"  # URLs of records need not be valid ones
NO_LINKS = np.zeros((0, 3), dtype=np.float32)


async def main(path: Path) -> None:
    """Print what the pages of a WARC file say, and the time of reading it."""
    counts: Counter[str] = Counter()
    rights, whole, own = PageRights(), 0.0, 0.0
    with path.open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response):
            http, url = record.http_headers, record.headers["WARC-Target-URI"]
            if (
                http is None
                or http.status_code != 200
                or "html" not in (http.get("Content-Type") or "")
            ):
                continue
            html = record.reader.read().decode("utf-8", "replace")
            headers = {name: value for name in HEADERS if (value := http.get(name))}
            answer = HtmlResponse(ANY, headers=headers, request=Request(ANY, meta={RIGHTS: []}))
            start = process_time()
            judged = Judged(read_page(html, url), 1.0, NO_LINKS)
            whole += process_time() - start
            tree = parse(html)
            meta = [
                (node.attributes["name"] or "", node.attributes["content"] or "")
                for node in tree.css("meta[name][content]")
            ]
            start = process_time()
            meta_signals(meta, US)
            licences(tree, html, url)
            found = (await rights.added(judged, answer)).page.rights
            json.dumps(found)
            own += process_time() - start
            counts["pages"] += 1
            counts.update({f"{each.signal} ({each.where.split(' /')[0]})" for each in found})
    for name, count in counts.most_common():
        print(f"{count:7,} {name}")
    number = counts["pages"]
    print(f"{1e3 * own / number:.3f} ms a page for rights, {1e3 * whole / number:.2f} to read it")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
