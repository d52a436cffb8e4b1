"""Make the shipped document frequencies of English words: numbers, without anyone's sentences.

    python benchmarks/background.py --data FOLDER

The folder holds pages, wiki, bbc and news20 as .jsonl.xz. Each of them counts the same, so that a
word of one source only stays rare. Writes models/vectors/english-frequencies.npz, in a minute of
processor time; the same folder gives the same bytes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from topic import ROOT

from tres_scrapy.page.document_file import Unreadable, read_pages
from tres_scrapy.topic.classifier import FREQUENCIES, Background, Text

SOURCES = ("pages", "wiki", "bbc", "news20")
MIN_TEXTS = 5
MOST_WORDS = 60_000


def count(file: Path) -> tuple[Counter[str], int]:
    """Return in how many texts of a file each word occurs, and the number of texts."""
    found: Counter[str] = Counter()
    texts = 0
    for page in read_pages(file):
        if not isinstance(page, Unreadable):
            found.update(set(Text.of(f"{page.title} {page.text}").words))
            texts += 1
    return found, texts


def main() -> None:
    """Count the words of all sources and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    shares: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for source in SOURCES:
        found, texts = count(data / f"{source}.jsonl.xz")
        spread.update(found)
        for word, number in found.items():
            shares[word] += number / texts / len(SOURCES)  # type: ignore[assignment]
        print(source, texts, "texts,", len(found), "words", flush=True)
    often = sorted((w for w in shares if spread[w] >= MIN_TEXTS), key=lambda w: (-shares[w], w))
    chosen = often[:MOST_WORDS]
    Background(chosen, [float(shares[word]) for word in chosen]).save(ROOT / "models" / FREQUENCIES)
    print(len(chosen), "words")


if __name__ == "__main__":
    main()
