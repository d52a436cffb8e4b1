"""The program `tres`, which starts even where packages are missing.

It is built on click, not on typer: options come from the declarations in config/, not from the
signatures of functions.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from time import time
from typing import Final

from tres_scrapy.cli.diagnosis import diagnose, first_line

MEANINGS: Final = {
    "crawl": "collect the pages of a topic, from a URL",
    "seeds": "rate seeds before a long crawl",
    "answer": "say which pages of a crawl from keywords are relevant",
    "explain": "why a crawl fetched a page",
    "report": "write the report of a crawl as one HTML file",
    "train": "make a topic of your own, from keywords and documents",
    "pack": "keep the topic that a crawl from keywords has learned",
    "rejudge": "judge the pages of a crawl again by the topic it has learned",
    "classify": "how relevant pages or texts are to a topic, and why",
    "refresh": "visit the pages of a finished crawl again",
    "surface": "find the records behind search boxes",
    "vectors": "train or convert word vectors",
    "doctor": "check that a crawl can run on this machine",
    "web": "serve an offline web to any crawler",
    "cluster": "one crawl in several processes, on one machine or many",
    "bench": "compare crawlers on the same offline web",
}
TEXT: Final = """\
TRES collects the web pages of a topic. It learns while it crawls which links lead to them.

Try it, without a network:
  tres crawl food --web synthetic --pages 1000 --max-per-domain 10

Commands (`tres COMMAND --help` shows examples and all options):
{commands}

Topics: {topics}

{crawls}"""
SHOWN: Final = 5  # crawls
FRESH: Final = 60.0  # seconds; a crawl that has written since then is running


def main() -> None:
    """Run the command that the command line names; without the packages for it, only `doctor`."""
    words = sys.argv[1:]
    try:
        from tres_scrapy.cli.command import run_line  # noqa: PLC0415 - click may be missing
    except ImportError as error:
        if words == ["doctor"]:
            sys.exit(diagnose())
        sys.exit(f"tres: {first_line(error)}: run `tres doctor`")
    run_line(*words)


def commands() -> list[str]:
    """Return the commands whose files are there: a command of a guest goes with its file."""
    return [name for name in MEANINGS if find_spec(f"tres_scrapy.cli.{name}") is not None]


def overview() -> str:
    """Return what can be done, the topics, and the crawls of this folder, running ones first."""
    lines = "\n".join(f"  {name:10}{MEANINGS[name]}" for name in commands())
    return TEXT.format(commands=lines, topics=_topics(), crawls=_crawls())


def _topics() -> str:
    from tres_scrapy.topic.shipped import HERE, shipped_models, topics  # noqa: PLC0415

    own = set() if HERE.resolve() == shipped_models() else set(topics(HERE))
    return ", ".join(f"{name} (in ./{HERE})" if name in own else name for name in topics())


def _crawls() -> str:
    from tres_scrapy.report.record_path import records_below  # noqa: PLC0415 - loads NumPy

    lines = [line for path in records_below()[:SHOWN] if (line := _described(path))]
    if not lines:
        return "No crawl has written to this folder."
    lines.sort(key=lambda line: not line.startswith("  runs"))
    return "\n".join(["Crawls in this folder, the latest first:", *lines])


def _described(path: Path) -> str:
    """Return a line about the crawl of a record; "" if it cannot be read."""
    from tres_scrapy.report.record import Record  # noqa: PLC0415 - loads NumPy
    from tres_scrapy.report.record_file import RecordError  # noqa: PLC0415

    try:
        with Record(path) as record:
            meta, asked = record.meta(), record.settings().get("TRES_PAGES")
            count = record.count()
    except RecordError:
        return ""
    pages = sum(count.get(kind, 0) for kind in ("relevant", "irrelevant", "copy"))
    of_limit = f" of {int(asked):,}" if asked else ""
    found = f"{pages:,}{of_limit} pages, {count.get('relevant', 0):,} relevant"
    written = float(meta.get("written", 0)) or path.stat().st_mtime  # 0: no page is written yet
    age = time() - written
    reason = meta.get("reason")
    if reason == "shutdown":
        state = f"stopped   {path}: {found}; the same command resumes it"
    elif reason:
        state = f"ended     {path}: {found} ({reason})"
    elif age < FRESH:
        state = f"runs      {path}: {found}"
    else:
        state = f"no end    {path}: {found}; last written {_ago(age)} ago"
    return f"  {state}"


def _ago(seconds: float) -> str:
    minutes = int(seconds / 60)
    if minutes < 120:
        return "a minute" if minutes == 1 else f"{minutes} minutes"
    return f"{minutes // 60} hours" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"


if __name__ == "__main__":
    main()
