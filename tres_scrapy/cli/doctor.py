"""`tres doctor`: what a crawl needs of this machine."""

from __future__ import annotations

from pathlib import Path

import click

from tres_scrapy.cli.command import Command, given_settings, project_settings, refuse
from tres_scrapy.cli.diagnosis import diagnose


@click.command(cls=Command, syntax="")
@click.argument("words", nargs=-1)
def command(words: tuple[str, ...]) -> int:
    """Check what a crawl needs of this machine: packages, topics, disk, network.

    A line says `ok`; `missing` for a part that only some crawls need, with the command that
    installs it; or `problem` for what stops every crawl, with exit status 1. One name is resolved,
    nothing is fetched.
    """
    if words:
        refuse("no arguments", words)
    try:
        models = project_settings().get("TRES_MODELS")
    except (ImportError, OSError):  # which it is about to say
        models = given_settings().get("TRES_MODELS")
    return diagnose(Path(models) if models else None)
