"""The documents of the three included topics, as arguments of `tres train`.

The web pages are labelled only as recipes or not; some of the others are about sports. So only the
recipes count as irrelevant for the other topics.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.training.document import Document, Selection, read_documents

ROOT: Final = Path(__file__).parent.parent
SPORTS: Final = (
    "Everyday_life.Sports,Everyday_life.Sports_events,Everyday_life.Sports_teams,"
    "People.Sports_and_games_people"
)
RELEVANT: Final = {
    "food": (
        "pages.jsonl.xz:label=food",
        "wiki.jsonl.xz:categories=Everyday_life.Food_and_agriculture,Everyday_life.Drink",
    ),
    "sports": (
        f"wiki.jsonl.xz:categories={SPORTS}",
        "bbc.jsonl.xz:label=sport",
        "news20.jsonl.xz:label=rec.sport.baseball,rec.sport.hockey",
    ),
    "hardware": (
        "wiki.jsonl.xz:categories=IT.Computing_hardware_and_infrastructure",
        "news20.jsonl.xz:label=comp.sys.ibm.pc.hardware,comp.sys.mac.hardware",
    ),
}
RECIPES: Final = "pages.jsonl.xz:label=food"
IRRELEVANT: Final = {
    "food": ("pages.jsonl.xz", "wiki.jsonl.xz", "bbc.jsonl.xz", "news20.jsonl.xz"),
    "sports": (RECIPES, "wiki.jsonl.xz", "bbc.jsonl.xz", "news20.jsonl.xz"),
    "hardware": (RECIPES, "wiki.jsonl.xz", "bbc.jsonl.xz", "news20.jsonl.xz"),
}


def documents(data: Path, topic: str) -> list[Document]:
    """Return the documents of a topic from the files of a folder."""
    sides = [
        [Selection.parse(str(data / text)) for text in side[topic]]
        for side in (RELEVANT, IRRELEVANT)
    ]
    return read_documents(*sides)[0]


def keywords(topic: str) -> KeywordSet:
    """Return the seed keywords of a topic."""
    return KeywordSet.read(ROOT / "models" / topic / "keywords.txt")
