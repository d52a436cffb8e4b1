"""Records found through a search box: it searches 10,000 titles and returns 100 per query.

    python benchmarks/surface_http.py [--seeds 0 1 2] [--selectors recapture gf] [--queries 120]
                                      [--in-process]

Runs `scrapy crawl surface` on library.test of the offline web `deep` and counts, from the web's
log, the records that its queries returned. With --in-process the same code reads the same pages
without Scrapy and HTTP. Writes results/surface/http.csv (or in_process.csv) and a table. Crawls
in the CSV are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

from tres_scrapy.lab.webs.deep import DeepWeb
from tres_scrapy.surface.result_page import Hit, ResultReader
from tres_scrapy.surface.search_box import find_interface
from tres_scrapy.surface.settings import SELECTORS
from tres_scrapy.surface.surfacing import Surfacing
from tres_scrapy.topic.pack import Pack

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "surface"
FIELDS = ("seed", "selector", "queries", "empty", "records_30", "records_60", "records_120")
HOME = "http://library.test/"
PROBE = re.compile("[bcdfghjkmpqvwxz]{11}")  # first query of the spider
PROBES = ("qxzjvkbwtpf", "zvkqxjhgdww")
FIRST, MIN_DF = 5, 2  # as in the spider
LEAST = 1.2  # required ratio to Generic Frequency


def crawl_by_scrapy(seed: int, selector: str, queries: int) -> list[tuple[str, list[int]]]:
    """Return each result page of a crawl: the query and the numbers of its records."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "web.jsonl")
        arguments = {
            "topic": "food", "web": "deep", "web_seed": seed, "web_log": log,
            "output": log.with_name("o"),
            "surface_selector": selector, "surface_queries": queries, "surface_min_yield": 0,
            "surface_follow": 0,
        }  # fmt: skip
        options = [part for item in arguments.items() for part in ("-a", "{}={}".format(*item))]
        command = [sys.executable, "-m", "scrapy", "crawl", "surface", *options]
        subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - our own program, no shell
        lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
        asked = [line for line in lines if line["kind"] == "search"]
        # a retried probe is there twice
        return [(a["query"], a["returned"]) for a in asked if not PROBE.fullmatch(a["query"])]


def crawl_in_process(
    web: DeepWeb, seed: int, selector: str, queries: int
) -> list[tuple[str, list[int]]]:
    """Return the same as `crawl_by_scrapy`, without Scrapy and HTTP."""
    interface = find_interface(web.answer(HOME).body.decode(), HOME)
    assert interface is not None
    reader, pages = ResultReader(interface.action), list[tuple[str, list[int]]]()
    for probe in PROBES:
        reader.learn_empty(web.answer(interface.url(probe)).body.decode(), interface.url(probe))
    pack = Pack.load(ROOT / "models" / "food")
    words = [word for word in pack.given if word.isalpha()]
    surfacing = Surfacing(
        SELECTORS[selector](seed), words, first=FIRST, budget=queries, min_df=MIN_DF
    )
    known: dict[str, int] = {}
    while (word := surfacing.next()) is not None:
        found: dict[str, Hit] = {}
        url = interface.url(word)
        while url:
            html = web.answer(url).body.decode()
            hits = reader.read(html, url)
            pages.append((word, [int(hit.url.split("/")[4].split("-")[0]) for hit in hits]))
            found |= {hit.url: hit for hit in hits}
            url = (reader.next_page(html, url) or "") if hits else ""
        new = [hit for url, hit in found.items() if url not in known]
        again = [known[url] for url in found if url in known]
        surfacing.book(word, [hit.tokens for hit in new], again)
        known |= {hit.url: number for number, hit in enumerate(new, len(known))}
    return pages


def counts(pages: Iterable[tuple[str, list[int]]]) -> tuple[list[int], int]:
    """Return the records known after each query, and the number of queries without results."""
    known: set[int] = set()
    after: dict[str, int] = {}
    brought: dict[str, int] = defaultdict(int)
    for query, numbers in pages:
        known.update(numbers)
        after[query] = len(known)
        brought[query] += len(numbers)
    return list(after.values()), sum(not count for count in brought.values())


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a results file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(rows: list[dict[str, str]], how: str) -> str:
    """Return the results as Markdown, with the ratio to Generic Frequency."""
    last: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        last[row["selector"]].append(float(row["records_120"]))
    text = f"# Records of library.test returned to {how}\n\n"
    text += "Search over titles only, 100 records a query at most, 10,000 in all. Made by "
    text += "`benchmarks/surface_http.py`.\n\n| " + " | ".join(FIELDS) + " |\n"
    text += "|---" * len(FIELDS) + "|\n"
    text += "".join("| " + " | ".join(row[name] for name in FIELDS) + " |\n" for row in rows)
    for name in [name for name in last if name != "gf" and last["gf"]]:
        ratio = mean(last[name]) / mean(last["gf"])
        verdict = "holds" if ratio >= LEAST else "MISSED"
        text += f"\n{name} against gf after 120 queries: {ratio:.2f} "
        text += f"(at least {LEAST}: {verdict})\n"
    return text


def main() -> None:
    """Run the crawls and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument(
        "--selectors",
        nargs="*",
        choices=list(SELECTORS),
        default=["recapture", "yield-ratio", "gf"],
    )
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("--in-process", action="store_true")
    options = parser.parse_args()
    name = "in_process" if options.in_process else "http"
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.csv"
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8", buffering=1) as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        for seed in options.seeds:
            web = DeepWeb("food", seed=seed)
            for selector in options.selectors:
                if (str(seed), selector) in {(row["seed"], row["selector"]) for row in read(path)}:
                    continue
                if options.in_process:
                    pages = crawl_in_process(web, seed, selector, options.queries)
                else:
                    pages = crawl_by_scrapy(seed, selector, options.queries)
                known, empty = counts(pages)
                marks = [known[min(q, len(known)) - 1] for q in (30, 60, 120)]
                writer.writerow((seed, selector, len(known), empty, *marks))
                print(f"seed {seed}, {selector}: {marks}", flush=True)
    how = "the same code without Scrapy" if options.in_process else "`scrapy crawl surface`"
    text = table(read(path), how)
    path.with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
