"""Every policy on recorded webs of real pages: two universities, and 70 modern sites.

    python benchmarks/real_webs.py --data FOLDER --scratch FOLDER [--webs universities sites]
        [--policies NAME...] [--ablation SETTING=VALUE[,SETTING=VALUE...]]... [--models FOLDER]
        [--pages N] [--seeds N...] [--jobs N]

--data holds university.jsonl.xz, university.warc.gz, sites.warc.gz, and their labels as
university-TOPIC.txt and sites-TOPIC.txt. Everything else is written to --scratch:

1. The packs course, faculty, project and student are trained on pages of other universities, some
   minutes each. They are not part of this repository. Packs that are in --models already are used
   as they are. The default of --models is a folder in --scratch.
2. The starts are chosen. Of each of the two universities: the three pages with most links to other
   recorded pages, two of a host at most. Of the sites: their directory (start 1); the directory and
   a relevant page, drawn at random of those that link to other relevant pages (start 2).
3. `compare.py` runs the policies, and TRES again with each --ablation. Finished runs are
   not repeated, so the same command continues after Ctrl-C.
4. results/real.md and results/real.csv show all runs in --scratch.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from comparing.comparison import FOUND, found_tables, write_rows
from comparing.result import Result, read_results
from comparing.table import LOOKAHEAD, TRES

from tres_scrapy.config.parser import seeds
from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.lab.webs.recorded import RecordedWeb, key
from tres_scrapy.page.text import read_page
from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.url.canonical import domain_of

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
TRES_PROGRAM: Final = ("-m", "tres_scrapy.cli.main")
COMPARE: Final = (str(HERE / "compare.py"),)
TRAINED: Final = ("course", "faculty", "project", "student")
DIRECTORY: Final = "http://directory.test/"
AS_SHIPPED: Final = "as-shipped"


@dataclass(frozen=True)
class RealWeb:
    """A recorded web: its files in --data begin with `file`."""

    file: str
    topics: tuple[str, ...]
    pages: int
    seeds: tuple[int, ...]


WEBS: Final = {
    "universities": RealWeb("university", TRAINED, 400, (1,)),
    "sites": RealWeb("sites", ("food", "hardware", "course"), 500, (1, 2, 3, 4, 5)),
}


def run(*arguments: object, program: Sequence[str] = TRES_PROGRAM) -> int:
    """Run a command of `tres`, or another program, in the repository and return its exit status."""
    command = [sys.executable, *program, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(HERE)}  # that of the rivals
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603 - ours
    return done.returncode


def train(topics: Iterable[str], data: Path, scratch: Path, models: Path) -> None:
    """Train the missing packs of these topics, and copy the shipped ones beside them."""
    for shipped in (ROOT / "models").iterdir():
        if not (models / shipped.name).exists():
            shutil.copytree(shipped, models / shipped.name)
    documents = scratch / "documents.jsonl"
    for topic in topics:
        for pack, options in ((topic, ()), (f"{topic}-svm", ("--classifier", "svm"))):
            if (models / pack / TOPIC_FILE).exists():
                continue
            if not documents.exists():
                write_documents(data / "university.jsonl.xz", documents)
            sides = ("--relevant", f"{documents}:label={topic}", "--irrelevant", documents)
            keywords = ("--keywords", HERE / "university_keywords" / f"{topic}.txt")
            if status := run("train", pack, *options, *keywords, *sides, "--output", models):
                sys.exit(status)


def write_documents(source: Path, target: Path) -> None:
    """Write the pages of universities that are not in the recorded web."""
    with lzma.open(source, "rt", encoding="utf-8") as lines:
        text = "".join(line for line in lines if json.loads(line)["site"] == "misc")
    target.write_text(text, encoding="utf-8")


def hubs(web: RecordedWeb, *, domains: int = 2, pages: int = 3, of_host: int = 2) -> Iterator[str]:
    """Yield the pages with most links to other recorded pages, some of each large domain."""
    links = {url: len(targets(web, url)) for url, _ in web.pages()}
    sizes = Counter(map(domain_of, links))
    for domain, _ in sizes.most_common(domains):
        hosts = Counter[str]()
        for url in sorted(links, key=lambda url: (-links[url], url)):
            host = urlsplit(url).netloc
            if domain_of(url) == domain and hosts[host] < of_host and hosts.total() < pages:
                hosts[host] += 1
                yield url


def relevant_page(web: RecordedWeb, topic: str) -> str:
    """Return a relevant page that links to another one, always the same of a topic."""
    pages = {slot: url for url, slot in web.pages() if web.relevant(slot)}
    linked = [url for url in pages.values() if not targets(web, url).isdisjoint(pages)]
    return random.Random(topic).choice(sorted(linked))


def targets(web: RecordedWeb, url: str) -> set[int]:
    """Return the slots of the other recorded URLs that a recorded page links to."""
    slot = web.slots[key(url)]
    page = read_page(web.read(slot)[2].decode("latin-1"), url, language=False)
    found = {web.slots.get(key(link.url)) for link in page.links} - {slot}
    return {each for each in found if each is not None}


def write_starts(name: str, data: Path, scratch: Path) -> str:
    """Write the starts of a web, one file per topic, and return the pattern of their names."""
    pattern, file = f"{scratch}/starts-{name}-{{topic}}.txt", WEBS[name].file
    for topic in WEBS[name].topics:
        path = Path(pattern.format(topic=topic))
        if not path.exists():
            web = RecordedWeb(data / f"{file}.warc.gz", data / f"{file}-{topic}.txt")
            if name == "universities":
                starts = list(hubs(web))
            else:
                starts = [DIRECTORY, f"{DIRECTORY},{relevant_page(web, topic)}"]
            path.write_text("\n".join([*starts, ""]), encoding="utf-8")
    return pattern


def bench(name: str, starts: str, options: argparse.Namespace) -> int:
    """Run the policies on a web, and TRES with each ablation; return the worst exit status."""
    web = WEBS[name]
    common: list[object] = ["--web", "recorded", "--data", options.data / f"{web.file}.warc.gz"]
    common += ["--labels", f"{options.data}/{web.file}-{{topic}}.txt", "--starts", f"@{starts}"]
    common += ["--topics", *web.topics, "--max", "none", "--pages", options.pages or web.pages]
    common += ["--seeds", *(options.seeds or web.seeds), "--jobs", options.jobs]
    common += ["-s", f"TRES_MODELS={options.models}"]
    folder = options.scratch / name
    status = run(
        *(*common, "--policies", *options.policies, "--output", folder / AS_SHIPPED),
        program=COMPARE,
    )
    for text in options.ablation:
        settings = [part for each in text.split(",") for part in ("-s", each)]
        output = ("--policies", TRES, "--output", folder / text)
        status = max(status, run(*common, *settings, *output, program=COMPARE))
    return status


def results_of(name: str, scratch: Path) -> Iterator[Result]:
    """Yield all results on a web; an ablation is a separate policy, and starts are numbered."""
    numbers = dict[tuple[str, str], str]()
    for topic in WEBS[name].topics:
        lines = (scratch / f"starts-{name}-{topic}.txt").read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            numbers[topic, ",".join(seeds(line))] = str(number)
    for place in sorted((scratch / name).iterdir()):
        for result in read_results(place / "runs")[0]:
            each = result.run
            policy = each.policy if place.name == AS_SHIPPED else f"{each.policy} {place.name}"
            start = numbers.get((each.topic, each.start), each.start)
            yield replace(result, run=replace(each, policy=policy, start=start))


def page_of(results: dict[str, list[Result]]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield from (
        "# Real pages",
        "",
        "`python benchmarks/real_webs.py` makes these tables.",
        "",
        FOUND,
    )
    for name, found in results.items():
        for pages in sorted({result.run.pages for result in found}):
            chosen = [result for result in found if result.run.pages == pages]
            yield from ("", f"## {name.capitalize()}, {pages} pages")
            for title, _, lines in found_tables(pages, chosen):
                yield from ("", f"### {title}", "", *lines)


def report(names: Iterable[str], scratch: Path) -> None:
    """Write the page and the CSV file of all runs."""
    results = {name: list(results_of(name, scratch)) for name in names if (scratch / name).exists()}
    folder = HERE / "results"
    folder.joinpath("real.md").write_text("\n".join([*page_of(results), ""]), encoding="utf-8")
    every = [
        replace(result, run=replace(result.run, web=name))
        for name, found in results.items()
        for result in found
    ]
    write_rows(folder / "real.csv", sorted(every, key=lambda result: result.run))
    print(f"{len(every)} runs, see {folder / 'real.md'}")


def main() -> None:
    """Train, choose the starts, run and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--webs", nargs="+", choices=list(WEBS), default=list(WEBS))
    parser.add_argument("--policies", nargs="+", default=[*POLICIES, LOOKAHEAD])
    parser.add_argument("--ablation", action="append", default=[])
    parser.add_argument("--pages", type=int)
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.data, options.scratch = options.data.resolve(), options.scratch.resolve()
    options.models = (options.models or options.scratch / "models").resolve()
    options.scratch.mkdir(parents=True, exist_ok=True)
    topics = {topic for name in options.webs for topic in WEBS[name].topics}
    train(sorted(topics & set(TRAINED)), options.data, options.scratch, options.models)
    statuses = [
        bench(name, write_starts(name, options.data, options.scratch), options)
        for name in options.webs
    ]
    report(WEBS, options.scratch)
    sys.exit(max(statuses))


if __name__ == "__main__":
    main()
