"""The program `tres`, which starts even where packages are missing.

It is built on click, not on typer: options come from the declarations in config/, not from the
signatures of functions.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

from tres_scrapy.cli.diagnosis import diagnose
from tres_scrapy.url.message import first_line

MEANINGS: Final = {
    "crawl": "collect the pages of a topic, from a URL",
    "seeds": "rate seeds before a long crawl",
    "answer": "say which pages of a crawl are relevant",
    "audit": "how much of a crawl's output is relevant, by pages drawn by chance",
    "explain": "why a crawl fetched a page",
    "export": "write the pages of a crawl, also irrelevant ones, as JSON lines, CSV, ...",
    "report": "write the report of a crawl as one HTML file",
    "publish": "write the relevant pages as a folder of static HTML",
    "train": "make a topic of your own, from keywords and documents",
    "pack": "keep the topic that a crawl from keywords has learned",
    "forget": "take pages out of every file of a crawl",
    "distrust": "take a site, and those found only through it, out of a crawl",
    "identity": "a key to sign requests with, so that sites recognise your crawler",
    "classify": "how relevant pages or texts are to a topic, and why",
    "refresh": "visit the pages of a finished crawl again",
    "surface": "find the records behind search boxes",
    "mcp": "let an agent drive crawls, by the Model Context Protocol",
    "vectors": "train or convert word vectors",
    "doctor": "check that a crawl can run on this machine",
    "web": "serve an offline web to any crawler",
    "cluster": "one crawl in several processes, on one machine or many",
}
TEXT: Final = """\
TRES collects the web pages of a topic. It learns while it crawls which links lead to them.

Try it, without a network:
  tres crawl food --web synthetic --pages 1000 --max-per-domain 10

Commands (`tres COMMAND --help` shows examples and all options):
{commands}

Topics: {topics}

{crawls}"""


def main() -> None:
    """Run the command that the command line names; without the packages for it, only `doctor`."""
    words = sys.argv[1:]
    try:
        from tres_scrapy.cli.command import run_line  # noqa: PLC0415 - click may be missing
    except (ImportError, OSError) as error:  # OSError: a broken shared library
        if words == ["doctor"]:
            sys.exit(diagnose())
        sys.exit(f"tres: {first_line(error)}: run `tres doctor`")
    run_line(*words)


def commands() -> list[str]:
    """Return the commands whose files are there: a command of a guest goes with its file."""
    return [name for name in MEANINGS if find_spec(f"tres_scrapy.cli.{name}") is not None]


def overview() -> str:
    """Return what can be done, the topics, and the crawls of this folder, running ones first."""
    try:
        from tres_scrapy.report.record_path import crawls_here  # noqa: PLC0415 - NumPy may be missing
        from tres_scrapy.topic.shipped import HERE, shipped_models, topics  # noqa: PLC0415
    except (ImportError, OSError) as error:
        sys.exit(f"tres: {first_line(error)}: run `tres doctor`")

    lines = [f"  {name:10}{MEANINGS[name]}" for name in commands()]
    own = set() if HERE.resolve() == shipped_models() else set(topics(HERE))
    known = [f"{name} (in ./{HERE})" if name in own else name for name in topics()]
    return TEXT.format(commands="\n".join(lines), topics=", ".join(known), crawls=crawls_here())


if __name__ == "__main__":
    main()
