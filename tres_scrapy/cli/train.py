"""`tres train`: train a topic pack from keywords and labelled documents."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from tres_scrapy.cli.command import Command, option, project_settings
from tres_scrapy.topic.shipped import HERE, VECTORS
from tres_scrapy.training.sample import STRIPES
from tres_scrapy.training.training_run import BESIDE, KINDS, WORDS, TrainingRun

HOSTS = f"documents from at least {STRIPES} hosts"


@click.command(
    cls=Command,
    syntax="TOPIC --keywords FILE --relevant PATH... --irrelevant PATH... [--answers FILE]",
    epilog="Example: tres train tea --keywords k.txt --relevant a/ --irrelevant b/",
)
@click.argument("topic")
@option(
    "--keywords",
    metavar="FILE",
    type=Path,
    required=True,
    help="text file with one word or phrase of the topic per line",
)
@option("--relevant", metavar="PATH...", many=True, help=HOSTS)
@option("--irrelevant", metavar="PATH...", many=True, help=HOSTS)
@option(
    "--answers",
    metavar="FILE...",
    many=True,
    help="answers of the live page or of tres answer, `yes URL` or `no URL`; they win over "
    "--relevant and --irrelevant. Pages whose text the crawl did not keep are fetched",
)
@option(
    "--models",
    "--output",
    metavar="DIR",
    type=Path,
    default=HERE,
    help=f"folder of topic packs, for the new pack (default: {HERE})",
)
@option(
    "--vectors",
    metavar="FILE",
    type=Path,
    help=f"word vectors from tres vectors, in the folder of --models (default: {VECTORS} there; "
    "the installed vectors are copied if it is missing)",
)
@option(
    "--classifier",
    type=click.Choice([*KINDS, WORDS]),
    default=KINDS[0],
    help=f"kind of model (default: {KINDS[0]}); tfidf takes a minute at most; {WORDS} learns from "
    "20 documents and the keywords",
)
@option(
    "--unlabelled",
    metavar="RUN",
    type=Path,
    help=f"with --classifier {WORDS}: JOBDIR or JSON lines file of a crawl from keywords, whose "
    "pages help without labels",
)
@option(
    "--beside",
    metavar="KIND...",
    many=True,
    may_be_bare=True,
    type=click.Choice([*KINDS, ""]),
    help=f"models to compare it with (default: {' '.join(BESIDE)})",
)
@option(
    "--language",
    metavar="CODE",
    default="en",
    help='skip documents in other languages; "" keeps all (default: en)',
)
@option(
    "--seed",
    metavar="N",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    help="random seed; the same seed makes the same pack (default: 0)",
)
@option("--date", metavar="DATE", default="", help="date to record in the pack")
def command(beside: tuple[str, ...], **given: Any) -> None:
    """Train a topic pack: the keywords and the classifier that recognise a topic.

    A PATH is a JSON lines file (html or text, and title, url and host if known), a folder of .html,
    .txt and .pdf files, a WARC file, or a .txt list of URLs. The URLs are fetched politely, and the
    pages are saved beside the list. Files may be .gz or .xz. FILE:FIELD=VALUE[,VALUE...] selects
    the lines whose field has one of the values, in which * stands for any text; a document selected
    by both sides is relevant. Give irrelevant documents of all kinds that the crawl may meet, near
    misses included. The pack is tested on hosts that it was not trained on. report.html in its
    folder shows the scores and the mistakes.
    """
    kinds = [each for each in beside if each] if beside else None
    try:
        TrainingRun(**given, beside=kinds).run(project_settings(), partial(print, flush=True))
    except KeyboardInterrupt:
        sys.exit("tres train: interrupted")
