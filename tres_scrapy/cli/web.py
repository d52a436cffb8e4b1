"""`tres web`: serve an offline web to any crawler."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Final

import click

from tres_scrapy.cli.command import Command, option, refuse
from tres_scrapy.config.offline import KINDS
from tres_scrapy.lab.webs.excerpt import write_collection
from tres_scrapy.lab.webs.fault import FaultSchedule
from tres_scrapy.lab.webs.server import DATA, FAULTS, LABELS, open_web, serve
from tres_scrapy.lab.webs.vocabulary import topics
from tres_scrapy.lab.webs.web import Web
from tres_scrapy.url.message import TresError, plainly

EXAMPLES: Final = """\
Examples:
  tres web synthetic --port 8080 --topic food
  tres web synthetic --topic space --collection web.jsonl
"""


@click.command(cls=Command, syntax=f"{'|'.join(KINDS)} [options]", epilog=EXAMPLES)
@click.argument("kind", nargs=-1)
@option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="default: any free port",
)
@option(
    "--topic",
    metavar="TOPIC",
    default="food",
    help="topic of the relevant pages (default: food); the synthetic web knows "
    f"{', '.join(topics())}",
)
@option(
    "--seed",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="seed of the synthetic web (default: 0)",
)
@option("--faults", metavar="SCHEDULE", default="", help=FAULTS)
@option("--data", metavar="FILE", type=Path, help=DATA)
@option("--labels", metavar="FILE", type=Path, help=LABELS)
@option(
    "--pages",
    type=click.IntRange(1),
    metavar="N",
    default=2_000,
    help="pages that --collection takes (default: 2000)",
)
@option(
    "--collection",
    type=Path,
    metavar="FILE",
    help="write some pages of the synthetic web to FILE as JSON lines, and exit; tres train and "
    "the web `corpus` read them",
)
@option("--log", metavar="FILE", type=Path, help="file to write one JSON line per fetch to")
@option("--json", "as_json", is_flag=True, help="print JSON lines, for programs")
def command(
    *,
    kind: tuple[str, ...],
    port: int,
    topic: str,
    seed: int,
    faults: str,
    data: Path | None,
    labels: Path | None,
    pages: int,
    collection: Path | None,
    log: Path | None,
    as_json: bool,
) -> None:
    """Serve an offline web as an HTTP proxy until Ctrl-C, then print the counts of its fetches."""
    if len(kind) != 1:
        refuse(f"one web ({', '.join(KINDS)})", kind)
    try:
        web = open_web(kind[0], topic, seed, data, labels)
        if collection is not None:
            print(write_collection(web, topic, collection, pages))
            return
        schedule = FaultSchedule.parse(faults, seed) if faults else None
        announce = _announce if as_json else partial(_explain, topic=topic)
        count = serve(web, port, log, partial(announce, web), schedule)
    except (OSError, OverflowError) as error:
        is_of_port = collection is None and getattr(error, "filename", None) is None
        doing = f"cannot serve on port {port}: " if is_of_port else ""
        raise TresError(f"{doing}{plainly(error)}") from None
    print(json.dumps(count.summary(), indent=None if as_json else 2), flush=True)


def _announce(web: Web, port: int) -> None:
    started = {"port": port, "seeds": web.seeds, "notes": web.notes}
    print(json.dumps(started | {"labelled": web.labelled}), flush=True)


def _explain(web: Web, port: int, topic: str) -> None:
    proxy = f"http_proxy=http://127.0.0.1:{port}"
    for note in web.notes:
        print(note)
    print(f"{web.name} is served on port {port}; Ctrl-C stops it and prints the counts. Try")
    print(f"    {proxy} curl {web.seeds[0]}")
    print(f"    {proxy} tres crawl {topic} {web.seeds[0]} --pages 50", flush=True)
