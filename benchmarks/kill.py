"""Kill a crawl again and again, and count what was lost.

    python benchmarks/kill.py [--pages 5000] [--kills 50] [--max 10] [--seed 1] [--output FILE]
        [--faults SCHEDULE] [--own] [--disk]

Another process serves a synthetic web and keeps the log; with `--faults`, it also injects faults,
as in `tres web --faults`. One crawl runs to its end; a second one, in a JOBDIR, is killed with
SIGKILL at random instants and restarted each time. Then the log, the JOBDIR, the items and a feed
of Scrapy's are compared. With `--own` the spider of another project crawls, tests/example_project;
its items are in the feed alone. With `--disk` the crawl is struck inside a write to its file, by
SIGKILL, EIO or ENOSPC, in each phase in turn. The exit status is 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urljoin, urlsplit

import numpy as np
from disk_fault import DiskFaults, version
from scrapy.http import Headers, HtmlResponse

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SAVED, SampleStore
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.web import PAGES
from tres_scrapy.page.text import read_page
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import recover
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.canonical import registrable_domain

PROJECT = Path(__file__).parents[1]
KITCHEN = PROJECT / "tests" / "example_project"
TOPIC = "food"
PATIENT = ("REST=2",)  # no host is given up for a fault of ten seconds


@dataclass
class Findings:
    """The comparison of log, JOBDIR and items of the killed crawl; `losses` must be 0."""

    kills: int
    pages: int
    harvest: float
    harvest_uninterrupted: float
    pages_fetched_twice: int
    links_discovered: int
    samples_recovered: int
    seconds_to_recover: float
    feed_items_twice: int  # allowed: after a kill a feed may repeat an item
    strikes: dict[str, int]  # with --disk, by phase and what was done
    losses: dict[str, int]


def main() -> int:
    """Run both crawls and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--max", type=int, default=10, help="most pages per domain")
    parser.add_argument("--seed", type=int, default=1, help="random seed of the web and the kills")
    parser.add_argument("--faults", default="", help="a schedule, or `default`")
    parser.add_argument("--own", action="store_true", help="crawl by a spider of another project")
    parser.add_argument("--disk", action="store_true", help="strike inside a write to the file")
    parser.add_argument("--output", type=Path, help="also write the findings to this file")
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        findings = examine(options, Path(directory))
    return reported(asdict(findings), options.output)


def reported(findings: dict[str, Any], output: Path | None) -> int:
    """Print findings, write them to a file if one is given, and return the exit status."""
    lines = [f"{name}: {value}" for name, value in findings.items()]
    print("\n".join(lines))
    if output is not None:
        output.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(any(findings["losses"].values()))


def examine(options: argparse.Namespace, directory: Path) -> Findings:
    """Run one crawl without and one with kills; compare log, JOBDIR and items of the second."""
    web = SyntheticWeb(TOPIC, seed=options.seed)
    pages, most = options.pages, options.max
    settings = [*PATIENT, f"PAGES={pages}", f"MAX_PER_DOMAIN={most}"]
    arguments = [part for each in settings for part in ("-s", f"TRES_{each}")]
    if options.own:
        arguments = ["recipes", "-a", f"start={web.seeds[0]}", *arguments]
        arguments += ["-s", "DOWNLOAD_FAIL_ON_DATALOSS=0"]  # as for the spider `tres`
    else:
        seeds = f"seed={','.join(web.seeds)}"
        arguments = ["tres", "-a", f"topic={TOPIC}", "-a", seeds, *arguments]
    whole, log, items, feed = (
        directory / f"{name}.jsonl" for name in ("whole", "killed", "items", "feed")
    )
    job = directory / "job"
    with served(options, whole) as port:
        finish(crawl(port, [*arguments, "-s", f"TRES_OUTPUT={directory / 'others.jsonl'}"]))
    with served(options, log) as port:
        arguments += ["-s", f"TRES_OUTPUT={items}", "-s", f"JOBDIR={job}"]
        arguments += ["-o", f"{feed}:jsonlines"]
        disk = DiskFaults(job, lambda: fetches(log)) if options.disk else None
        whens = random.Random(options.seed).choices(range(pages), k=options.kills)
        under_way: Counter[str] = Counter()
        for number, when in enumerate(sorted(whens), start=1):
            if disk is None:
                kill(crawl(port, arguments), log, when)
            else:
                start_crawl = lambda more, last: crawl(port, [*arguments, *last], more)  # noqa: E731
                print(disk.strike(number, when, start_crawl))
            under_way.update(leased_urls(job, web))
            print(f"kill {number} of {len(whens)}: {fetches(log)} fetches so far", flush=True)
        finish(crawl(port, arguments))
    if options.own:  # its start requests are sent at each start, as Scrapy does
        under_way[web.seeds[0]] += options.kills + 1  # once by a link: Scrapy forgets start_urls
    start = time.perf_counter()
    recovered = recovered_crawl(job, most)
    seconds = time.perf_counter() - start
    urls = Counter(str(line["url"]) for line in pages_of(log))
    # the own spider chooses among the links; a page may be served before a kill and still wait
    read = urls.keys() & set(booked_pages(job))
    links = set(urls) | (set() if options.own else links_of(web, read))
    exported = urls_in(feed)
    return Findings(
        kills=options.kills,
        pages=len(urls),
        harvest=harvest(log),
        harvest_uninterrupted=harvest(whole),
        pages_fetched_twice=urls.total() - len(urls),
        links_discovered=len(links),
        samples_recovered=len(recovered.store),
        seconds_to_recover=round(seconds, 2),
        feed_items_twice=exported.total() - len(exported),
        strikes={} if disk is None else dict(disk.done),
        losses={
            "not stopped cleanly": 0 if disk is None else disk.unclean,
            "fetched twice without a kill": twice(log, under_way),
            "discovered and lost": lost(recovered.store, web, links, booked_pages(job), most),
            "domains over MAX": over_max(log, urls, booked_pages(job), most),
            **({} if options.own else item_losses(job, items)),
            "feed items missing": len(expected(job, options.own, web) - exported.keys()),
        },
    )


def twice(log: Path, under_way: Counter[str]) -> int:
    """Count and print pages that were fetched again though no kill met them under way."""
    times: dict[str, list[float]] = defaultdict(list)
    for line in pages_of(log):
        times[line["url"]].append(line["time"])
    found = [url for url, each in times.items() if len(each) - 1 > under_way[url]]
    for url in found:
        gaps = [round(time - times[url][0], 1) for time in times[url][1:]]
        print(f"fetched again: {url}: {gaps} s later; at {under_way[url]} kills under way")
    return len(found)


def over_max(log: Path, urls: Iterable[str], booked: Iterable[str], most: int) -> int:
    """Count and print domains of which more than `most` pages were served."""
    full = {name for name, count in Counter(map(domain, urls)).items() if count > most}
    known = set(booked)
    for line in pages_of(log):
        if domain(line["url"]) in full:
            print(f"over MAX: {line['time']:.1f} {line['url']} booked={line['url'] in known}")
    return len(full)


def lost(
    store: SampleStore, web: SyntheticWeb, links: Iterable[str], booked: Iterable[str], most: int
) -> int:
    """Count and print links that are neither fetched nor waiting although MAX allows it.

    A redirected link is fetched if its target is. All pages the crawl has `booked` count for MAX,
    including "not found" pages with status 200 that the crawl did not recognise.
    """
    waiting = {store.url(row) for row in store.pending_rows().tolist()}
    pages = Counter(map(domain, booked))
    found = [
        url
        for url in links
        if url not in waiting
        and pages[domain(url)] < most
        and not given_up(store, url)
        and not any(map(store.closure.is_closed, (url, *deque(chain(web, url), maxlen=1))))
    ]
    for url in found:
        print(f"lost: {url}: {pages[domain(url)]} pages booked")
    return len(found)


def booked_pages(job: Path) -> list[str]:
    """Return the URLs of the pages that are fetched according to a JOBDIR."""
    with closing(sqlite3.connect(job / NAME)) as connection:
        urls = urls_of(connection)
        found = connection.execute("SELECT url_number FROM page WHERE kind = 'page'")
        return [urls[number] for (number,) in found]


def item_losses(job: Path, items: Path) -> dict[str, int]:
    """Compare the JSON lines file with the relevant pages in the JOBDIR."""
    exported, relevant = urls_in(items), relevant_pages(job)
    return {
        "items missing": len(relevant - exported.keys()),
        "items of no relevant page": len(exported.keys() - relevant),
        "items twice": exported.total() - len(exported),
    }


def urls_in(items: Path) -> Counter[str]:
    """Return how often each page stands in a file of items."""
    rows = map(json.loads, items.open(encoding="utf-8"))
    return Counter(str(row.get("final_url", row["url"])) for row in rows)


def relevant_pages(job: Path) -> set[str]:
    """Return the URLs of the relevant pages in a JOBDIR."""
    with closing(sqlite3.connect(job / NAME)) as connection:
        urls = urls_of(connection)
        found = connection.execute("SELECT url_number FROM page WHERE kind = 'page' AND relevant")
        return {urls[number] for (number,) in found}


def expected(job: Path, own: bool, web: SyntheticWeb) -> set[str]:
    """Return the URLs of the pages that the feed must have: the own spider yields all but seeds.

    After a retry Scrapy follows a redirect to a page that was fetched: its item has that URL.
    """
    if not own:
        return relevant_pages(job)
    return {deque(chain(web, url), maxlen=1)[0] for url in booked_pages(job)} - {*web.seeds}


@contextmanager
def served(options: argparse.Namespace, log: Path, topic: str = TOPIC) -> Iterator[int]:
    """Serve a synthetic web on a port."""
    command = [sys.executable, "-m", "tres_scrapy.cli.main", "web", "--json", "synthetic"]
    command += ["--topic", topic]
    command += ["--seed", str(options.seed), "--log", str(log), "--faults", options.faults]
    pipe = subprocess.PIPE
    server = subprocess.Popen(command, cwd=PROJECT, stdin=pipe, stdout=pipe, text=True)  # noqa: S603
    assert server.stdout is not None
    yield json.loads(server.stdout.readline())["port"]
    server.communicate()  # the server stops when its standard input closes


def crawl(
    port: int, arguments: list[str], environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a crawl through the web's proxy, with more variables in its environment."""
    command = [sys.executable, "-m", "scrapy", "crawl", *arguments]
    command += ["-s", "DOWNLOAD_DELAY=0", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=16"]
    environment = {
        **os.environ,
        **(environment or {}),
        "http_proxy": f"http://127.0.0.1:{port}",
        "PYTHONPATH": str(PROJECT),
    }
    return subprocess.Popen(  # noqa: S603 - our own command
        [*command, "-s", "LOG_LEVEL=WARNING"],
        cwd=KITCHEN if "recipes" in arguments else PROJECT,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for the end of a crawl, which must succeed."""
    _, said = process.communicate()
    if process.returncode or "Traceback" in said:
        sys.exit(f"the crawl ended with status {process.returncode}:\n{said[-3000:]}")


def kill(process: subprocess.Popen[str], log: Path, when: int) -> None:
    """Kill a crawl soon after the web has given a number of answers, or while the crawl starts."""
    least = max(when, fetches(log))
    while fetches(log) < least and process.poll() is None:
        time.sleep(0.01)
    time.sleep(3 * random.Random(when).random() ** 3)
    process.kill()
    process.communicate()


def fetches(log: Path) -> int:
    """Return the number of answers that a web has given."""
    return log.read_bytes().count(b"\n") if log.exists() else 0


def leased_urls(job: Path, web: SyntheticWeb) -> list[str]:
    """Return the URLs that a killed crawl had leased, and the targets of their redirects."""
    if not (job / NAME).exists() or not version(job / NAME):  # it has no tables yet
        return []
    with closing(sqlite3.connect(job / NAME)) as connection:
        urls = urls_of(connection)
        found = connection.execute("SELECT samples FROM batch ORDER BY number")
        samples = np.frombuffer(b"".join(blob for (blob,) in found), SAVED)
        rows = [row for (row,) in connection.execute("SELECT row FROM lease")]
    return [url for number in samples["url"][rows] for url in chain(web, urls[number])]


def urls_of(connection: sqlite3.Connection) -> list[str]:
    """Return the URLs in a JOBDIR by number."""
    found = connection.execute("SELECT urls FROM batch ORDER BY number")
    return [url for (text,) in found for url in json.loads(text)]


def chain(web: SyntheticWeb, url: str) -> Iterator[str]:
    """Yield a URL and the URLs that it redirects to."""
    for _ in range(10):
        yield url
        location = dict(web.answer(url).headers).get("Location")
        if location is None:
            return
        url = urljoin(url, location)


def recovered_crawl(job: Path, most: int, kind: type[Journal] = Journal) -> Crawl:
    """Return the crawl that a JOBDIR holds in a kind of journal."""
    store = SampleStore(DomainLedger(Cap(most, most)))
    crawl = Crawl(store, make_policy("tres", store, PolicyInputs()))
    journal = kind.open(job, {})
    recover(journal, crawl)
    journal.close()
    return crawl


def pages_of(log: Path) -> list[dict[str, Any]]:
    """Return the lines of a web's log about pages."""
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["kind"] in PAGES]


def harvest(log: Path) -> float:
    """Return the share of relevant pages among the pages a web has served, each counted once."""
    relevant = {line["url"]: is_relevant(line) for line in pages_of(log)}
    return round(sum(map(bool, relevant.values())) / len(relevant), 4)


def domains(log: Path) -> int:
    """Return the number of domains of which a web has served relevant pages."""
    return len({domain(line["url"]) for line in pages_of(log) if is_relevant(line)})


def is_relevant(line: dict[str, Any]) -> bool:
    """Return whether a line of a web's log is about a relevant page."""
    return bool(line["relevant"]) and line["kind"] == "page"


def links_of(web: SyntheticWeb, urls: Iterable[str]) -> set[str]:
    """Return the links of pages as the crawl reads them."""
    found: set[str] = set()
    for url in urls:
        answer = web.answer(url)
        html = HtmlResponse(url, headers=Headers(answer.headers), body=answer.body).text
        found |= {link.url for link in read_page(html, url, language=False).links}
    return found


def given_up(store: SampleStore, url: str) -> bool:
    """Return whether the crawl has given up the domain of a URL."""
    return bool(store.ledger.exhausted(np.array([store.domain_of(url)]))[0])


def domain(url: str) -> str:
    """Return the registrable domain of a URL."""
    return registrable_domain(urlsplit(url).hostname or "")


if __name__ == "__main__":
    sys.exit(main())
