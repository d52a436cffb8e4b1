"""`tres explain`: why a crawl fetched a page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from tres_scrapy.cli.command import Command, option, record_of, refuse
from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.record import Record
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError


@click.command(
    cls=Command,
    syntax="[RUN] URL [--json]",
    epilog="Example: tres explain food.jsonl https://example.org/soup",
)
@click.argument("words", nargs=-1)
@option("--json", is_flag=True, help="print one JSON object")
def command(words: tuple[str, ...], json: bool) -> None:
    """Explain why the crawl RUN fetched URL.

    Shown are the path from the seed, the rule of its leaf in the tree, what its link says, its
    features, its Q value, and the links it was preferred to; in a crawl from keywords also which
    words and answers make the page relevant. RUN is the record of the crawl (food-TIME.run), its
    JOBDIR or its JSON lines file; without it, the latest crawl of this folder.
    """
    if len(words) not in (1, 2) or not words[-1].lower().startswith(("http://", "https://")):
        refuse("the URL of a page, or a RUN and a URL", words)
    *run, url = words
    path = record_of(run)
    with Record(path) as record, record.moment():
        explanation = FetchExplanation(record, canonicalise(url) or url)
        print(explanation.as_json() if json else explanation, flush=True)
    if json:
        return
    if reason := _topic_reason(path, explanation.address):
        print(f"\n{reason}", flush=True)


def _topic_reason(record: Path, url: str) -> str:
    """Return what a topic from keywords says of a page, "" without such a topic or page."""
    from tres_scrapy.topic.explanation import topic_reason  # noqa: PLC0415
    from tres_scrapy.topic.topic_folder import find_folder  # noqa: PLC0415 - PyTorch takes 2 s

    for run in (record, record.parent):  # beside the output, or in JOBDIR
        with suppress(TresError, OSError):
            return str(topic_reason(find_folder(run), url) or "")
    return ""
