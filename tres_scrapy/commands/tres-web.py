# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-web`: serve an offline web to any crawler."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from tqdm import tqdm

from tres_scrapy.commands.calling import named
from tres_scrapy.lab.webs.changing import DAY, ChangingWeb
from tres_scrapy.lab.webs.excerpt import Excerpt
from tres_scrapy.lab.webs.fault import FaultSchedule
from tres_scrapy.lab.webs.server import DATA, FAULTS, KINDS, LABELS, open_web, serve
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.vocabulary import topics
from tres_scrapy.lab.webs.web import Web
from tres_scrapy.page.text import read_page
from tres_scrapy.url.message import plainly
from tres_scrapy.url.whole_file import whole_file


class Command(ScrapyCommand):
    """Serve an offline web until Ctrl-C, then print the counts of what was fetched."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - declared so by Scrapy

    def syntax(self) -> str:
        return (
            f"<{'|'.join(KINDS)}> [--port N] [--topic TOPIC] [--seed N] [--data FILE] "
            "[--labels FILE] [--log FILE] [--faults SCHEDULE]"
        )

    def short_desc(self) -> str:
        return "Serve an offline web as an HTTP proxy"

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = (
            "Examples: scrapy tres-web synthetic --port 8080 --topic food, "
            "scrapy tres-web synthetic --topic space --collection web.jsonl"
        )
        parser.add_argument("--port", type=int, default=0, help="default: any free port")
        parser.add_argument(
            "--topic",
            default="food",
            help=f"topic of the relevant pages (default: food); the synthetic and the deep web "
            f"know {', '.join(topics())}",
        )
        parser.add_argument(
            "--seed", type=int, default=0, help="seed of the synthetic web (default: 0)"
        )
        parser.add_argument("--faults", metavar="SCHEDULE", default="", help=FAULTS)
        parser.add_argument("--data", type=Path, help=DATA)
        parser.add_argument("--labels", type=Path, help=LABELS)
        parser.add_argument(
            "--pages",
            type=int,
            default=2_000,
            help="pages of the changing web, or that --collection takes of the synthetic web "
            "(default: 2000)",
        )
        parser.add_argument(
            "--day", type=float, default=DAY, help="seconds per day of the changing web"
        )
        parser.add_argument(
            "--collection",
            type=Path,
            metavar="FILE",
            help="write the pages of the changing web, or some of the synthetic web, to FILE as "
            "JSON lines, and exit. Those of the synthetic web have categories (the topic) and "
            "links: tres train and the web `corpus` read them",
        )
        parser.add_argument("--log", type=Path, help="file to write one JSON line per fetch to")

    def run(self, args: list[str], opts: Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"give one web ({', '.join(KINDS)}), not {named(args)}")
        try:
            web = open_web(
                args[0],
                opts.topic,
                opts.seed,
                opts.data,
                opts.labels,
                pages=opts.pages,
                day=opts.day,
            )
            if opts.collection is not None:
                sys.exit(_write_collection(web, opts.topic, opts.collection, opts.pages))
            faults = FaultSchedule.parse(opts.faults, opts.seed) if opts.faults else None
            count = serve(
                web,
                opts.port,
                opts.log,
                lambda port: _explain(web, opts.topic, port),
                faults,
            )
        except (OSError, OverflowError) as error:
            doing = f"serve on port {opts.port}" if opts.collection is None else "write the pages"
            sys.exit(f"scrapy tres-web: cannot {doing}: {plainly(error)}")
        except ValueError as error:
            sys.exit(f"scrapy tres-web: {error}")
        print(json.dumps(count.summary(), indent=2))


def _write_collection(web: Web, topic: str, path: Path, count: int) -> str | None:
    """Write pages as JSON lines; return an error message or None."""
    rows: Iterable[Mapping[str, object]]
    if isinstance(web, SyntheticWeb):
        excerpt = Excerpt(web, count)
        rows, total = excerpt.rows(), len(excerpt)
        about = f" from {excerpt.hosts:,} hosts, {excerpt.relevant:,} of them on {topic}"
    elif isinstance(web, ChangingWeb):
        rows, total, about = _initial(web), len(web.shelf.urls), ""
    else:
        return "scrapy tres-web: --collection needs the web `synthetic` or `changing`"
    with whole_file(path) as file:
        for row in tqdm(rows, "writing", total, unit=" pages", disable=None):
            file.write(f"{json.dumps(row, ensure_ascii=False)}\n".encode())
    print(f"{total:,} pages{about}, written to {path}")
    return None


def _initial(web: ChangingWeb) -> Iterator[dict[str, object]]:
    for number, url in enumerate(web.shelf.urls):
        page = read_page(web.html(number, 0, number), url, language=False)
        yield {"url": url, "title": page.title, "text": page.text}


def _explain(web: Web, topic: str, port: int) -> None:
    proxy = f"http_proxy=http://127.0.0.1:{port}"
    for note in web.notes:
        print(note)
    print(f"{web.name} is served on port {port}; Ctrl-C stops it and prints the counts. Try")
    print(f"    {proxy} curl {web.seeds[0]}")
    if isinstance(web, ChangingWeb):
        print(f"    {proxy} tres refresh FILE", flush=True)
        return
    print(f"    {proxy} curl '{web.search.format(query=topic)}'")
    print(f"    {proxy} tres crawl {topic} {web.seeds[0]} --pages 50", flush=True)
