"""Keyword expansion for three topics: the columns of Table 2, and the use of feature 5.

    python benchmarks/keywords.py --data FOLDER [--vectors FILE]

The folder holds pages, wiki, bbc and news20 as .jsonl.xz. Prints and writes results/keywords.md:
for the seed keywords KS, KS with the K' of Algorithm 1, and KS with the K' of distinctive words,
the number of keywords, the mean count in relevant (C) and other documents (C'), and the share of
titles that contain a keyword.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from topic import IRRELEVANT, ROOT, documents
from topic import keywords as starting_list

from tres_scrapy.page.place import tokenise
from tres_scrapy.topic.classifier import WordVectors
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.training.document import Document
from tres_scrapy.training.recipe import distinctive_words, expand

RESULTS = Path(__file__).parent / "results"
# Table 2: mean count in C and in C', #KS, #K'
PAPER = {
    "sports": (19.55, 0.86, 62, 32),
    "food": (15.46, 1.04, 10, 205),
    "hardware": (17.66, 1.44, 11, 129),
}


class Row(NamedTuple):
    """A set of keywords and its counts in relevant and other documents."""

    topic: str
    keywords: str
    number: int
    counts: tuple[float, float]  # mean appearances of words and phrases, in C and in C'
    titles: tuple[float, float]  # share with a word or phrase


def measure(topic: str, labelled: list[Document], vectors: WordVectors) -> tuple[list[Row], str]:
    """Return the rows of a topic, and the keywords that the expansion found."""
    given = starting_list(topic)
    relevant = [tokenise(d.text) for d in labelled if d.relevant]
    others = (tokenise(d.text) for d in labelled if not d.relevant)
    plain, b = expand(given.words, distinctive_words(relevant), vectors)
    found, _ = expand(given.words, distinctive_words(relevant, others), vectors)
    rows = [_row(topic, "KS", set(), given, labelled)]
    rows.append(_row(topic, "KS, K'", plain, given, labelled))
    rows.append(_row(topic, "KS, K' of distinctive words", found, given, labelled))
    known = len(vectors.unit(given.words))
    return rows, (
        f"{topic}: b = {b:.3f}, {known} of {len(given.words)} words of KS have a vector. K' of "
        f"distinctive words: {_closest_first(found, given, vectors)}. The rest of K': "
        f"{_closest_first(plain - found, given, vectors)}."
    )


def _row(
    topic: str, name: str, found: set[str], given: KeywordSet, labelled: list[Document]
) -> Row:
    keywords = KeywordSet([*given.words, *found], given.phrases)
    counts = _means((d.relevant, keywords.counts(tokenise(d.text)).total()) for d in labelled)
    titles = _means((d.relevant, keywords.in_text(d.title)) for d in labelled if d.title)
    return Row(topic, name, len(found) or len(given.words), counts, titles)


def _closest_first(found: set[str], given: KeywordSet, vectors: WordVectors) -> str:
    names = sorted(found)
    closeness = vectors.unit(names) @ vectors.unit(given.words).mean(axis=0)
    return ", ".join(names[place] for place in np.argsort(-closeness)) or "none"


def _means(figures: Iterable[tuple[bool, float]]) -> tuple[float, float]:
    """Return the mean over relevant and over other documents."""
    relevant, values = map(np.array, zip(*figures, strict=True))
    return float(values[relevant].mean()), float(values[~relevant].mean())


def report(rows: list[Row], notes: list[str], vectors: Path) -> list[str]:
    """Return the lines of the report, the paper's figures in brackets."""
    lines = [
        "# Keyword expansion",
        "",
        f"Made by `python benchmarks/keywords.py` with `{vectors.name}`; the paper's Table 2 in "
        "brackets.",
        "",
        "| topic | keywords | #KS or #K' | mean count in C / C' | titles with one in C / C' (%) |",
        "|---|---|---|---|---|",
    ]
    for topic, name, number, counts, titles in rows:
        paper = PAPER[topic]
        size = f"{number} ({paper[2] if name == 'KS' else paper[3]})"
        beside = "" if name == "KS" else " ({} / {})".format(*paper)
        count = "{:.2f} / {:.2f}".format(*counts) + beside
        share = " / ".join(f"{100 * share:.1f}" for share in titles)
        lines.append(f"| {topic} | {name} | {size} | {count} | {share} |")
    return lines + [line for note in notes for line in ("", note)]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    shipped = ROOT / "models" / "vectors" / "english.npz"
    parser.add_argument("--vectors", type=Path, default=shipped)
    options = parser.parse_args()
    vectors = WordVectors.load(options.vectors)
    rows, notes = [], []
    for topic in IRRELEVANT:
        made, note = measure(topic, documents(options.data, topic), vectors)
        rows += made
        notes.append(note)
    lines = report(rows, notes, options.vectors)
    print(*lines, sep="\n")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "keywords.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
