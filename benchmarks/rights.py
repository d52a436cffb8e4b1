"""Counts what the pages of a recorded web say about their use: `python benchmarks/rights.py WARC`.

It prints how many pages have each signal, and the time of reading the signals as a share of that of
reading the page.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from time import process_time

from fastwarc.warc import ArchiveIterator, WarcRecordType

from tres_scrapy.page.robots import US
from tres_scrapy.page.text import parse, read_page
from tres_scrapy.rights.directive import HEADERS, header_signals, meta_signals
from tres_scrapy.rights.licence import licences


def main(path: Path) -> None:
    """Print what the pages of a WARC file say, and the time of reading it."""
    counts: Counter[str] = Counter()
    whole = own = 0.0
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
            headers = [(name, value) for name in HEADERS if (value := http.get(name))]
            start = process_time()
            page = read_page(html, url)
            whole += process_time() - start
            tree = parse(html)
            meta = [
                (node.attributes["name"] or "", node.attributes["content"] or "")
                for node in tree.css("meta[name][content]")
            ]
            start = process_time()
            found = (*header_signals(headers, US), *meta_signals(meta, US))
            licences(tree, html, url)
            own += process_time() - start
            signals = {(each.signal, each.where.split()[0]) for each in (*found, *page.rights)}
            counts["pages"] += 1
            counts.update(f"{name} ({where})" for name, where in signals or {("none", "anywhere")})
    for name, count in counts.most_common():
        print(f"{count:7,} {name}")
    number = counts["pages"]
    print(f"{1e3 * own / number:.3f} ms a page for the signals, {own / whole:.1%} of reading it")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
