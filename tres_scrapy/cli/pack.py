"""`tres pack`: keep the topic that a crawl from keywords has learned."""

from __future__ import annotations

import tomllib
from pathlib import Path

import click

from tres_scrapy.cli.command import Command, option, refuse
from tres_scrapy.config.parser import identifier
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.topic.shipped import HERE, TOPIC_FILE, shipped_models, topics
from tres_scrapy.topic.topic_folder import count_unlearned, find_folder
from tres_scrapy.topic.topic_learner import learn_answers
from tres_scrapy.url.message import TresError


@click.command(
    cls=Command,
    syntax="save NAME RUN [--models DIR]",
    epilog="Example: tres pack save tea jobs/tea",
)
@click.argument("words", nargs=-1)
@option(
    "--models",
    metavar="DIR",
    type=Path,
    default=HERE,
    help="folder of topic packs (default: ./models)",
)
def command(words: tuple[str, ...], models: Path) -> None:
    """Save the topic that a crawl from keywords has learned as the pack NAME.

    Later crawls take it as their topic. RUN is the JOBDIR of the crawl or its JSON lines file.
    """
    if len(words) != 3 or words[0] != "save":
        refuse("`save NAME RUN`", words)
    try:
        name = identifier(words[1])
    except ValueError as error:
        raise TresError(f"the name {words[1]!r} {error}") from None
    folder, place = find_folder(Path(words[2])), models / name
    if (place / TOPIC_FILE).exists():
        raise TresError(f"{place} exists: choose another name or remove it")
    if Pack.load(folder.pack).prior_weight:
        raise TresError("the answers correct a trained topic in this crawl alone: no pack has both")
    if count_unlearned(folder):
        for line in learn_answers(folder):
            print(line)
    facts = tomllib.loads((folder.pack / TOPIC_FILE).read_text(encoding="utf-8"))
    answers = folder.read_state().get("answers", {})
    write_pack(place, facts | {"name": name}, Pack.load(folder.pack).classifier)
    print(place)
    if answers and not any(answers.values()):
        print("All answers were no: this topic may find nothing relevant.")
    if name in topics(shipped_models()) and models == HERE:
        print(f"Crawls in this folder use it instead of the topic {name} that TRES brings.")
