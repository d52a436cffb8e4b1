"""Build the word-frequency tables of the synthetic web: counts of single words, never sentences.

python benchmarks/word_tables.py DATA_FOLDER
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterator
from math import log
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

OUTPUT = Path(__file__).parents[1] / "tres_scrapy" / "webs" / "words.json"
TOPIC_WORDS = 1200
BACKGROUND_WORDS = 3000
MIN_DOCUMENTS = 12
MOST_PER_DOCUMENT = 20  # so that one document cannot fill a table with a name
SMOOTHING = 20.0
WORD = re.compile(r"[a-zà-öø-ÿ]{2,14}")
# Every topic gathers the documents whose label contains one of these marks; the first match wins.
MARKS = {
    "food": (" food", "Food_and_agriculture", "Everyday_life.Drink"),
    "sports": (" sport", "rec.sport", "Sports"),
    "hardware": (".hardware", "Computing_hardware"),
    "computing": ("comp.", "tech", "IT.", "sci.crypt"),
    "politics": ("politics", "Politics"),
    "religion": ("religion", "atheism", "Religion"),
    "space": ("sci.space", "Astronomy"),
    "medicine": ("sci.med", "Health_and_medicine"),
    "autos": ("rec.autos", "rec.motorcycles", "Road_transport"),
    "business": ("business", "Business"),
    "music": ("Music", "Performers"),
    "film": ("entertainment", "Films", "Television", "Theatre"),
    "history": ("History", "Historical"),
    "animals": ("Birds", "Mammals", "Reptiles", "Dinosaurs"),
    "travel": ("Geography.", "Countries"),
    "electronics": ("sci.electronics", "Engineering"),
}


def documents(data: Path) -> Iterator[tuple[str, str]]:
    """Yield (labels, text) of every labelled document in the data folder."""
    for name in ("bbc", "news20", "wiki", "pages"):
        with lzma.open(data / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                labels = " ".join(row["categories"]) if name == "wiki" else row["label"]
                yield labels, row["text"] if "text" in row else visible_text(row["html"])


def visible_text(html: str) -> str:
    """Return the text of a page without its styles."""
    tree = LexborHTMLParser(html)
    tree.strip_tags(["style", "script", "noscript", "svg"])
    return tree.body.text(separator=" ") if tree.body else ""


def topic_of(labels: str) -> str | None:
    """Return the first topic with a mark in the labels."""
    for topic, marks in MARKS.items():
        if any(mark in f" {labels}" for mark in marks):
            return topic
    return None


def count(data: Path) -> tuple[dict[str, Counter[str]], Counter[str], Counter[str]]:
    """Return word counts by topic and in total, and the number of documents with each word."""
    topics: dict[str, Counter[str]] = {topic: Counter() for topic in MARKS}
    total: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for labels, text in documents(data):
        counts = Counter(WORD.findall(text.lower()))
        words = {word: min(n, MOST_PER_DOCUMENT) for word, n in counts.items()}
        total.update(words)
        spread.update(words.keys())
        if topic := topic_of(labels):
            topics[topic].update(words)
    return topics, total, spread


def characteristic(words: Counter[str], total: Counter[str], spread: Counter[str]) -> list[str]:
    """Return the topic's words, ranked by count times log-odds against all text."""
    size, everything = words.total(), total.total()

    def weight(word: str) -> float:
        inside = (words[word] + SMOOTHING * total[word] / everything) / (size + SMOOTHING)
        odds = log(inside * everything / total[word])
        return odds * min(words[word], 200) ** 0.5 if odds > log(2) else 0.0

    candidates = [w for w in words if spread[w] >= MIN_DOCUMENTS and len(w) > 2]
    best = sorted(candidates, key=lambda word: (-weight(word), word))[:TOPIC_WORDS]
    return [word for word in best if weight(word) > 0]


def tables(data: Path) -> dict[str, dict[str, int]]:
    """Return every topic's table of word counts, and one called background."""
    topics, total, spread = count(data)
    chosen = {t: characteristic(words, total, spread) for t, words in topics.items()}
    known = {word for words in chosen.values() for word in words[: TOPIC_WORDS // 4]}
    plain = [w for w, _ in total.most_common() if w not in known][:BACKGROUND_WORDS]
    result = {topic: {w: topics[topic][w] for w in words} for topic, words in chosen.items()}
    return {"background": {word: total[word] for word in plain}, **result}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python benchmarks/word_tables.py DATA_FOLDER")
    made = tables(Path(sys.argv[1]))
    OUTPUT.write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    print(f"{OUTPUT.name}: {OUTPUT.stat().st_size} bytes,", {t: len(w) for t, w in made.items()})
