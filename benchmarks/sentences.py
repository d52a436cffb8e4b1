"""Makes a web of sentences: pages of about 2.4 kB of text and 20 links, for `corpus --data FILE`.

The sentences come from a grammar; its nouns are the shipped word tables of the topics.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from tres_scrapy.lab.webs.corpus import MARKS
from tres_scrapy.lab.webs.vocabulary import tables

HOST_PAGES = 10
LENGTH = 2_400  # characters of a page
NEAR, FAR = 8, 12  # links to the own host, to other hosts
LOYAL = 0.6  # share of links to other hosts that keep to the topic
SHARE = 0.15  # of the hosts that are about the topic
NOUNS = 400  # most frequent words of a topic that are used
OPENINGS = ("The", "A", "Every", "This", "Another", "Their", "Our", "Its")
VERBS = (
    "was found near",
    "is often compared with",
    "had been made from",
    "will be followed by",
    "can be used instead of",
    "does not depend on",
    "came before",
    "should be kept away from",
)
ADJECTIVES = (
    "old",
    "small",
    "useful",
    "common",
    "whole",
    "early",
    "quiet",
    "simple",
    "heavy",
    "recent",
    "good",
    "strange",
)
JOINTS = ("because", "although", "and then", "so that", "while", "but", "before", "when")
ENDINGS = (
    "as most people know",
    "for a very long time",
    "in many places of the world",
    "more than once",
    "without any doubt",
    "at the end of the day",
    "on the other side",
    "with some care",
)
SENTENCES = 4  # in a paragraph


def write_web(path: Path, topic: str, pages: int, seed: int = 0) -> None:
    """Write `pages` linked documents as JSON lines; the same seed gives the same file."""
    rng, words = Random(seed), tables()
    others = [name for name in words if name not in {topic, "background"}]
    topics = [
        topic if rng.random() < SHARE else rng.choice(others) for _ in range(pages // HOST_PAGES)
    ]
    own = [host for host, name in enumerate(topics) if name == topic]
    nouns = [list(words[topics[page // HOST_PAGES]])[:NOUNS] for page in range(pages)]
    titles = [f"{of[page % NOUNS]} and {of[page * 7 % NOUNS]}" for page, of in enumerate(nouns)]
    with path.open("w", encoding="utf-8") as file:
        for page in range(pages):
            host = page // HOST_PAGES
            is_own = topics[host] == topic
            hosts = [host] * NEAR + [
                rng.choice(own) if is_own and rng.random() < LOYAL else rng.randrange(len(topics))
                for _ in range(FAR)
            ]
            row = {
                "id": str(page),
                "title": titles[page].capitalize(),
                "categories": [f"{MARKS[topic][0] if is_own else topics[host]}.{host}"],
                "links": [str(HOST_PAGES * each + rng.randrange(HOST_PAGES)) for each in hosts],
                "text": _text(rng, nouns[page]),
            }
            file.write(json.dumps(row) + "\n")


def _text(rng: Random, nouns: list[str]) -> str:
    text = ""
    while len(text) < LENGTH:
        sentences = [_sentence(rng, nouns) for _ in range(SENTENCES)]
        text += " ".join(sentences) + "\n\n"
    return text


def _sentence(rng: Random, nouns: list[str]) -> str:
    def clause() -> str:
        thing = f"{rng.choice(ADJECTIVES)} {rng.choice(nouns)}"
        return f"{thing} {rng.choice(VERBS)} the {rng.choice(nouns)} of {rng.choice(nouns)}"

    joint = f"{rng.choice(JOINTS)} {rng.choice(OPENINGS).lower()}"
    return f"{rng.choice(OPENINGS)} {clause()}, {joint} {clause()}, {rng.choice(ENDINGS)}."
