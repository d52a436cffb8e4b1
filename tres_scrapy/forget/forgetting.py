"""Forgets pages of a run: first the refusal, then the files, last the file of the run.

A kill at any moment leaves a state from which the same call completes the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tres_scrapy.forget.file import FORGETTERS
from tres_scrapy.forget.scrub import plan, scrub
from tres_scrapy.report.crawl_report import report_beside
from tres_scrapy.report.record_path import REPORT, records_of
from tres_scrapy.run.database import Access, Database
from tres_scrapy.run.forgotten import FORGOTTEN, Forgotten
from tres_scrapy.run.run_file import LATE_ITEMS, NAME, SCHEMA
from tres_scrapy.topic.topic_folder import TopicFolder, find_folder
from tres_scrapy.topic.topic_learner import learn_answers
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError, printable
from tres_scrapy.url.whole_file import whole_file

ANOTHER = "the crawl runs, or has not ended: stop it first"


def wanted_of(text: str) -> Forgotten:
    """Return what a URL or the name of a site stands for; raise TresError for another text."""
    if text.lower().startswith(("http://", "https://")):
        url = canonicalise(text)
        if url is not None:
            return Forgotten(urls=frozenset({url}))
    site = text.lower().strip(".")
    if "." in site and "/" not in site and canonicalise(f"http://{site}/") == f"http://{site}/":
        return Forgotten(sites=frozenset({site}))
    raise TresError(f"{text!r} must be a URL, or a site such as example.org")


def forget(path: Path, wanted: Forgotten, say: Callable[[str], None]) -> None:
    """Forget pages of the run whose file is `path`; `say` gets a line for each thing done.

    Raise TresError, and change nothing, if the crawl runs.
    """
    with stopped(path) as database:
        fetched = _fetched(database, wanted)
        if not fetched:
            named = ", ".join(wanted.urls | wanted.sites)
            say(f"{path} has no page of {printable(named)}: a resumed crawl will not fetch one")
        for url in [url for url, is_delivered in fetched if is_delivered]:
            say(f"delivered before: {printable(url)}")
        forgotten = plan(database, wanted)
        for line in take_out(path, database, forgotten):
            say(line)
        say(f"{path}: {scrub(database, forgotten)} forgotten")
    report_again(path, say)


@contextmanager
def stopped(path: Path) -> Iterator[Database]:
    """Open the file of a run to change it; raise TresError if the crawl runs or has shards."""
    if not path.is_file():
        raise TresError(f"{path} does not exist: give the record, JOBDIR or JSON lines of a crawl")
    with closing(SCHEMA.open(path, Access.EXCLUSIVE)) as database:
        meta = dict(database.execute("SELECT name, value FROM meta").fetchall())
        if int(meta.get("shards", 1)) > 1:
            raise TresError(f"{path} is of a crawl in shards: it cannot be changed")
        if path.name != NAME and "ended" not in meta:
            raise TresError(f"{path}: {ANOTHER}")
        yield database


def report_again(path: Path, say: Callable[[str], None]) -> None:
    """Write the report of a run again, if it has one."""
    if path.with_suffix(REPORT).is_file():
        say(f"{report_beside(path)}: written again")


def _fetched(database: Database, wanted: Forgotten) -> list[tuple[str, bool]]:
    """Return the URLs of pages, and whether pipelines and feeds have had their items."""
    noted = database.execute("SELECT value FROM meta WHERE name = ?", (LATE_ITEMS,)).fetchone()
    late = set(json.loads(noted[0])) if noted else set()
    query = "SELECT row, relevant, url, ifnull(final_url, url) FROM page WHERE kind <> ?"
    found = database.execute(query, (FORGOTTEN,))
    return [
        (urls[0], bool(relevant or row in late))
        for row, relevant, *urls in found.fetchall()
        if any(map(wanted.covers, urls))
    ]


def take_out(path: Path, database: Database, forgotten: Forgotten) -> Iterator[str]:
    """Take pages out of the files beside the output and out of the topic; yield a line for each."""
    found = database.execute("SELECT value FROM meta WHERE name = 'output'").fetchone()
    output = Path(*found or ())
    yield from _files(output, forgotten)
    yield from _topic(path, output, forgotten)
    for other in records_of(output):
        if other.resolve() != path.resolve():
            yield f"{other} is of another crawl to {output.name}: it keeps what it has of them"


def _files(output: Path, forgotten: Forgotten) -> Iterator[str]:
    """Yield a line for each file beside the output."""
    stem = output.name.removesuffix(".jsonl")
    for ending, forgetter in FORGETTERS.items():
        path = output.parent / f"{stem}{ending}"
        if path.is_file():
            yield f"{path}: {forgetter(path, forgotten)} taken out"


def _topic(run: Path, output: Path, forgotten: Forgotten) -> Iterator[str]:
    """Take pages and answers out of a topic that learns, and fit it again."""
    try:
        folder = find_folder(run.parent if run.name == NAME else run, output)
    except TresError:
        return  # a trained topic
    count = _forget_kept(folder, forgotten)
    said = " ".join(learn_answers(folder))
    yield f"{folder.path}: {count} taken out, fitted again. {said}".rstrip()


def _forget_kept(folder: TopicFolder, forgotten: Forgotten) -> int:
    """Take pages and answers out of a topic; return the number of its pages taken out."""
    pages = list(folder.read_pages())
    kept = [page for page in pages if not forgotten.covers(page[2].url)]
    folder.keep_pages(kept)
    if folder.answers.exists():
        lines = folder.answers.read_text(encoding="utf-8-sig").splitlines()
        left = [line for line in lines if not forgotten.covers((line.split() or [""])[-1])]
        with whole_file(folder.answers) as file:
            file.write("".join(f"{line}\n" for line in left).encode())
    asked = folder.read_answered()
    folder.answered.unlink(missing_ok=True)
    folder.add_answered(row for row in asked if not forgotten.covers(row["url"]))
    state = folder.read_state()
    answers = {u: a for u, a in state.get("answers", {}).items() if not forgotten.covers(u)}
    if state:  # `next` of 0: the topic is fitted at once, though no answer is new
        folder.write_state(state | {"answers": answers, "next": 0})
    folder.questions.unlink(missing_ok=True)
    return len(pages) - len(kept)
