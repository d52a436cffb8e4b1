"""`tres mcp`: let an agent drive crawls."""

from __future__ import annotations

from pathlib import Path

import click

from tres_scrapy.cli.command import Command, option, pairs_of, refuse
from tres_scrapy.config.extra import require
from tres_scrapy.mcp_server.workplace import Workplace


@click.command(
    cls=Command,
    syntax="[FOLDER] [--most-pages N] [--most-running N] [-a NAME=VALUE]...",
    epilog="Example: tres mcp runs --most-pages 500",
)
@click.argument("words", nargs=-1)
@option("--most-pages", metavar="N", type=int, default=1_000, help="most pages of a crawl")
@option("--most-running", metavar="N", type=int, default=2, help="most crawls at once")
@option("-a", "given", metavar="NAME=VALUE", multiple=True, help="an argument of every crawl")
def command(
    words: tuple[str, ...], most_pages: int, most_running: int, given: tuple[str, ...]
) -> None:
    """Serve the Model Context Protocol on standard input and output, for an agent.

    The agent can start crawls in FOLDER (default: runs), answer their questions, read and export
    their pages, and stop them. It cannot change what `-a` gives here. Crawls end with the server
    and can be resumed.
    """
    if len(words) > 1:
        refuse("one FOLDER or none", words)
    if most_pages < 1 or most_running < 1:
        refuse("limits of 1 or more", (str(most_pages), str(most_running)))
    require("mcp", "tres mcp")
    from tres_scrapy.mcp_server.server import serve  # noqa: PLC0415 - the SDK may be missing

    folder = Path(*words or ["runs"]).absolute()
    serve(Workplace(folder, most_pages, most_running, pairs_of(given, "-a")))
