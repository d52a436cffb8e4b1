"""Compare classifiers: Table 1 of the paper on our documents, and on sources not trained on.

    python benchmarks/classifier.py --data FOLDER [--topics food,sports,hardware]

The folder holds pages, wiki, bbc and news20 as .jsonl.xz. Every model is trained as by
`tres train`: in 5 folds that keep hosts whole, then with one source left out for testing,
for each source with relevant documents. Rows are appended to results/classifier.csv; an interrupted
run continues where it stopped (one process per topic may run at the same time).
results/classifier.md is written from the rows, with the time per page.
"""

from __future__ import annotations

import argparse
import csv
import tomllib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from time import process_time
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from topic import IRRELEVANT, ROOT, documents

from tres_scrapy.topic.bilstm import BiLstm, Network
from tres_scrapy.topic.classifier import Text, WordVectors
from tres_scrapy.training.document import Document
from tres_scrapy.training.recipe import Recipe
from tres_scrapy.training.sample import FOLDS, STRIPES, Example, example, lead
from tres_scrapy.training.validation import (
    Score,
    choose_threshold,
    cross_validate,
    judge,
    score,
    stripes,
)

RESULTS = Path(__file__).parent / "results"
VECTORS = ROOT / "models" / "vectors" / "english.npz"
# Table 1: F-macro of BiLSTM and of ACHE's SVM
PAPER = {"sports": (95.4, 90.4), "food": (94.2, 86.7), "hardware": (90.8, 83.9)}
NAMES = {
    "widebilstm": "wide BiLSTM",
    "bilstm": "BiLSTM",
    "svm": "ACHE's SVM",
    "tfidf": "TF-IDF + LR",
}
LEFT_OUT = ("tfidf", "svm", "widebilstm")
BATCH, TOKENS, ANCHORS, ROUNDS = 16, 300, 40, 30


class Row(NamedTuple):
    """Scores of one model on a fold, or on the source it was not trained on."""

    topic: str
    test: str  # "fold 1", ... or a source
    kind: str
    part: str  # texts, titles, leads
    documents: int
    relevant: int
    figures: Score


class Part(NamedTuple):
    """The texts judged: whole texts, their first 30 words or titles, of a fold or source."""

    test: str
    name: str
    chosen: NDArray[np.bool_]


class Corpus(NamedTuple):
    """The documents of a topic as classifiers see them."""

    topic: str
    documents: list[Document]
    examples: list[Example]
    true: NDArray[np.bool_]
    source: NDArray[np.str_]
    recipe: partial[Recipe]


def corpus(topic: str, data: Path, seed: int) -> Corpus:
    """Read the documents of a topic."""
    read = documents(data, topic)
    true = np.array([document.relevant for document in read])
    source = np.array([document.source for document in read])
    vectors = WordVectors.load(VECTORS)
    recipe = partial(Recipe, vectors=vectors, seed=seed)
    return Corpus(topic, read, [example(document) for document in read], true, source, recipe)


def folds(held: Corpus, kind: str, stripe: NDArray[np.int64]) -> Iterator[Row]:
    """Yield the scores of each fold, and of each source over all folds."""
    found = cross_validate(kind, held.examples, stripe, held.recipe(kind))
    for fold in range(FOLDS):
        for part, answers in (("texts", found.texts), ("titles", found.titles)):
            chosen = (found.fold == fold) & ~np.isnan(answers)
            figures = score(held.true[chosen], answers[chosen], found.thresholds[fold])
            yield _row(held, kind, Part(f"fold {fold + 1}", part, chosen), figures)


def left_out(held: Corpus, kind: str, stripe: NDArray[np.int64], source: str) -> Iterator[Row]:
    """Yield the scores on each source of a model trained on the other sources."""
    test = held.source == source
    stop = _chosen(held, ~test & (stripe == 0))
    model, _ = held.recipe(kind)(_chosen(held, ~test & (stripe > 0)), stop)
    judged = judge(kind, model, stop)
    for part in ("texts", "leads", "titles"):
        chosen = test & np.array([len(_part(e, part).words) > 0 for e in held.examples])
        logits = model.logits([_part(e, part) for e in _chosen(held, chosen)])
        answers = judged.calibration.probabilities(logits)
        figures = score(held.true[chosen], answers, choose_threshold([judged]))
        yield _row(held, kind, Part(source, part, chosen), figures)


def _part(drawn: Example, part: str) -> Text:
    """Return the whole text, its first 30 words or its title."""
    if part == "titles":
        return drawn.title
    return drawn.text if part == "texts" else lead(drawn.text)


def _chosen(held: Corpus, mask: NDArray[np.bool_]) -> list[Example]:
    return [held.examples[row] for row in np.flatnonzero(mask).tolist()]


def _row(held: Corpus, kind: str, part: Part, figures: Score) -> Row:
    count, relevant = int(part.chosen.sum()), int(held.true[part.chosen].sum())
    rounded = (round(figure, 4) for figure in figures)
    return Row(held.topic, part.test, kind, part.name, count, relevant, Score(*rounded))


def measure(topic: str, data: Path, seed: int, file: Path) -> None:
    """Measure and append the missing rows of a topic."""
    done = {(row.kind, row.test) for row in read_rows(file) if row.topic == topic}
    held = corpus(topic, data, seed)
    stripe = stripes(held.documents, STRIPES, seed=seed)
    for kind in LEFT_OUT:
        for source in dict.fromkeys(held.source[held.true].tolist()):
            if (kind, source) not in done:
                append(file, left_out(held, kind, stripe, source))
    for kind in reversed(NAMES):  # the slow ones last
        if (kind, "fold 1") not in done:
            append(file, folds(held, kind, stripe))


def read_rows(file: Path) -> list[Row]:
    """Return the rows of earlier runs."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return [
            Row(topic, test, kind, part, int(count), int(relevant), Score(*map(float, figures)))
            for topic, test, kind, part, count, relevant, *figures in list(csv.reader(lines))[1:]
        ]


def append(file: Path, rows: Iterator[Row]) -> None:
    """Add rows to the file, with a head if it is new."""
    made = [[*row[:-1], *row.figures] for row in rows]
    new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerows([[*Row._fields[:-1], *Score._fields], *made] if new else made)
    for row in made:
        print(*row, flush=True)


def page_time() -> float:
    """Return CPU milliseconds per page with its anchors, on one core, in batches of 16."""
    torch.set_num_threads(1)
    vectors = WordVectors.load(VECTORS)
    network = Network(vectors.matrix.shape[1], hidden=64, dense=64, vocabulary=len(vectors))
    model, rng = BiLstm(network, vectors), np.random.default_rng(0)
    words = np.array(vectors.words)
    pages = [Text(rng.choice(words, TOKENS).tolist()) for _ in range(BATCH)]
    anchors = [Text(rng.choice(words, rng.integers(1, 6)).tolist()) for _ in range(BATCH * ANCHORS)]
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        model.logits(pages + anchors)
        times.append((process_time() - start) * 1_000 / BATCH)
    return sorted(times)[ROUNDS // 2]


def report(rows: Sequence[Row], milliseconds: float) -> list[str]:
    """Return the tables in Markdown."""
    figures = ("precision", "recall", "F-macro", "MCC", "PR-AUC")
    return [
        "# Classifiers",
        "",
        "Made by `python benchmarks/classifier.py`; figures in %, mean ± standard deviation of 5 "
        "folds with hosts whole. In brackets F-macro of Table 1.",
        *("", "## Table 1", *_head(*figures), *_table1(rows, "texts")),
        "",
        "## The packs as they ship",
        "",
        "As `tres train` wrote it into their topic.toml, of the same folds: the mean of "
        "each figure, and the deviation of F-macro.",
        *("", f"| topic | model | of | {' | '.join(figures)} |", "|---" * 8 + "|", *_packs()),
        *("", "## The same models on titles", *_head(*figures), *_table1(rows, "titles")),
        "",
        "## Sources that were not trained on",
        "",
        "F-macro (PR-AUC). Leads are the first 30 words.",
        *(*_head("left out", "texts", "leads", "titles"), *_sources(rows)),
        "",
        f"A page of {TOKENS} tokens with {ANCHORS} anchors takes the wide BiLSTM "
        f"{milliseconds:.1f} ms of CPU on one core, {BATCH} pages a batch.",
    ]


def _head(*names: str) -> list[str]:
    return ["", f"| topic | model | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]


def _table1(rows: Sequence[Row], part: str) -> Iterator[str]:
    for topic in PAPER:
        for kind, name in NAMES.items():
            folds = [
                row.figures
                for row in rows
                if (row.topic, row.kind, row.part) == (topic, kind, part) and "fold" in row.test
            ]
            if folds:
                cells = [_spread(values) for values in zip(*folds, strict=True)]
                paper = {"bilstm": PAPER[topic][0], "svm": PAPER[topic][1]}.get(kind)
                cells[2] += f" ({paper})" if paper and part == "texts" else ""
                yield f"| {topic} | {name} | {' | '.join(cells)} |"


def _packs() -> Iterator[str]:
    for topic in PAPER:
        facts = tomllib.loads((ROOT / "models" / topic / "topic.toml").read_text(encoding="utf-8"))
        for kind, parts in facts["validation"].items():
            for part, found in parts.items():
                cells = [f"{100 * found[name]:.1f}" for name in Score._fields]
                cells[2] += f" ± {100 * found['f_macro_deviation']:.1f}"
                yield f"| {topic} | {NAMES[kind]} | {part} | {' | '.join(cells)} |"


def _sources(rows: Sequence[Row]) -> Iterator[str]:
    tests = dict.fromkeys((r.topic, r.test) for r in rows if not r.test.startswith("fold"))
    for topic, test in sorted(tests):
        for kind, name in NAMES.items():
            found = {
                r.part: r.figures for r in rows if (r.topic, r.test, r.kind) == (topic, test, kind)
            }
            if found:
                cells = [
                    f"{100 * found[part].f_macro:.1f} ({100 * found[part].pr_auc:.1f})"
                    for part in ("texts", "leads", "titles")
                ]
                yield f"| {topic} | {name} | {test} | {' | '.join(cells)} |"


def _spread(shares: Sequence[float]) -> str:
    return f"{100 * mean(shares):.1f} ± {100 * stdev(shares):.1f}"


def main() -> None:
    """Measure what is missing and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--topics", default=",".join(IRRELEVANT))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "classifier.csv"
    for topic in options.topics.split(","):
        measure(topic, options.data, options.seed, file)
    lines = report(read_rows(file), page_time())
    print(*lines, sep="\n")
    (RESULTS / "classifier.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
