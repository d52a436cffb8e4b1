"""How well a topic from keywords and a seed page ranks pages, by the number of answers.

    python benchmarks/words.py --data FOLDER

The folder holds pages, wiki, bbc, news20 and university as .jsonl.xz. The hosts of a topic's
documents are split in two: a crawl's pages come from one half, the average precision (AP) is
measured on the other. A random relevant page is the seed. Answers come from the true labels, 25
at a time or fewer, about the pages that `tres answer` would show; in one run 5 % of them are wrong.
Prints and writes results/words.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, f1_score
from topic import ROOT

from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack
from tres_scrapy.training.document import record_page
from tres_scrapy.training.reader import read_records
from tres_scrapy.training.source import Unreadable
from tres_scrapy.training.word_folder import THRESHOLD
from tres_scrapy.training.word_learner import MOST_PAGES, word_topic
from tres_scrapy.training.word_topic import Sheet, TopicFit, WordTopic, questions

RESULTS = Path(__file__).parent / "results"
FILES = ("pages", "wiki", "bbc", "news20", "university")
MARKS = (0, 10, 20, 50, 100, 200)
ROUND = 25  # most answers between two fits
SEEDS = (0,)
WRONG = 0.05
LEAST_WORDS = 20
GENERAL = {"pages", "wiki", "bbc", "news20"}


class Record(NamedTuple):
    """A document: its file, host, labels and words."""

    file: str
    host: str
    labels: frozenset[str]
    words: Counter[str]
    length: int


@dataclass(frozen=True)
class Topic:
    """The labels that make a document relevant, the files that it is sought in, the keywords."""

    labels: frozenset[str]
    files: frozenset[str]
    keywords: str

    def words(self) -> KeywordSet:
        """Return the keywords, from a file or from the line itself."""
        path = ROOT / self.keywords
        return KeywordSet.read(path) if path.is_file() else KeywordSet.parse(self.keywords.split())


def topic(labels: str, files: set[str], keywords: str) -> Topic:
    """Return a topic from its labels with spaces between."""
    return Topic(frozenset(labels.split()), frozenset(files), keywords)


TOPICS = {
    "food": topic(
        "food Everyday_life.Food_and_agriculture Everyday_life.Drink",
        GENERAL,
        "drink wine cheese spicy chefs meat snacks food recipe cooking",
    ),
    "sports": topic(
        "sport rec.sport.baseball rec.sport.hockey Everyday_life.Sports "
        "Everyday_life.Sports_events Everyday_life.Sports_teams People.Sports_and_games_people",
        {"wiki", "bbc", "news20"},
        "sport football baseball hockey team league championship player coach match",
    ),
    "hardware": topic(
        "IT.Computing_hardware_and_infrastructure comp.sys.ibm.pc.hardware comp.sys.mac.hardware",
        {"wiki", "bbc", "news20"},
        "hardware computer motherboard processor memory disk drive monitor keyboard graphics",
    ),
    "course": topic("course", {"university"}, "benchmarks/university_keywords/course.txt"),
    "faculty": topic("faculty", {"university"}, "benchmarks/university_keywords/faculty.txt"),
    "birds": topic(
        "Science.Biology.Birds",
        {"wiki"},
        "bird birds feathers nest eggs species plumage wings beak migration",
    ),
    "astronomy": topic(
        "Science.Physics.Space_Astronomy",
        {"wiki"},
        "astronomy planet star telescope galaxy orbit moon solar comet space",
    ),
}


class Split(NamedTuple):
    """Pages of one half of the hosts, with true labels, and the texts of the other half."""

    sheets: list[Sheet]
    true: NDArray[np.bool_]
    tests: list[Text]
    expected: NDArray[np.bool_]


def read(data: Path) -> list[Record]:
    """Read all documents."""
    found = []
    for file in FILES:
        for number, record in enumerate(read_records(data / f"{file}.jsonl.xz")):
            if isinstance(record, Unreadable):
                continue
            page = record_page(record)
            words = Text.of(f"{page.title} {page.text}").words
            labels = [*(record.get("categories") or ()), str(record.get("label") or "")]
            host = str(record.get("host") or f"{file}#{number}")
            counts = Counter(words)
            found.append(Record(file, host, frozenset(labels), counts, len(words)))
        print(file, len(found), flush=True)
    return found


def split(records: list[Record], about: Topic, seed: int) -> Split:
    """Divide the hosts of a topic's documents in two halves; draw the pages and a seed page."""
    rng = np.random.default_rng(seed)
    inside = [r for r in records if r.file in about.files and r.length >= LEAST_WORDS]
    hosts = sorted({record.host for record in inside})
    half = dict(zip(hosts, (rng.random(len(hosts)) < 0.5).tolist(), strict=True))
    pool = [record for record in inside if half[record.host]]
    pool = [pool[row] for row in rng.permutation(len(pool))[:MOST_PAGES].tolist()]
    tests = [record for record in inside if not half[record.host]]
    true = np.array([bool(record.labels & about.labels) for record in pool])
    first = int(rng.choice(np.flatnonzero(true)))
    sheets = [Sheet(f"{row}", "", "", r.words, row == first) for row, r in enumerate(pool)]
    texts = [Text(list(record.words.elements())) for record in tests]
    expected = np.array([bool(record.labels & about.labels) for record in tests])
    return Split(sheets, true, texts, expected)


def curve(topic_: WordTopic, held: Split, wrong: float, seed: int) -> dict[str, list[float]]:
    """Return AP, and F1 at the threshold, at each number of answers."""
    rng = np.random.default_rng(seed)
    answers: dict[str, bool] = {}
    found: dict[str, list[float]] = {"ap": [], "f1": []}
    while True:
        fit = topic_.fit(held.sheets, answers)
        if len(answers) in MARKS:
            p = probabilities(fit, held.tests)
            found["ap"].append(float(average_precision_score(held.expected, p)))
            found["f1"].append(float(f1_score(held.expected, p >= 0.5)))
        if len(answers) >= MARKS[-1]:
            return found
        count = min(ROUND, next(mark for mark in MARKS if mark > len(answers)) - len(answers))
        for sheet, _ in questions(pack_of(fit, topic_), held.sheets, answers, count):
            truth = bool(held.true[int(sheet.url)])
            answers[sheet.url] = truth != bool(rng.random() < wrong)


def pack_of(fit: TopicFit, topic_: WordTopic) -> Pack:
    """Return the pack of a fit."""
    return Pack(
        "words",
        threshold=THRESHOLD,
        keywords=topic_.keywords,
        classifier=fit.model,
        calibration=fit.calibration,
    )


def probabilities(fit: TopicFit, texts: list[Text]) -> NDArray[np.float64]:
    """Return P(relevant) of texts."""
    return fit.calibration.probabilities(fit.model.logits(texts))


def ranked(score: Callable[[Text], float], held: Split) -> float:
    """Return the AP of a score."""
    return float(average_precision_score(held.expected, [score(text) for text in held.tests]))


def labelled(topic_: WordTopic, held: Split) -> float:
    """Return the AP of the regression on all true labels of the pages."""
    truth = {sheet.url: bool(t) for sheet, t in zip(held.sheets, held.true, strict=True)}
    p = probabilities(topic_.fit(held.sheets, truth), held.tests)
    return float(average_precision_score(held.expected, p))


def rows_of(records: list[Record], name: str, about: Topic) -> tuple[str, str, str]:
    """Return the rows of a topic: AP, AP with wrong answers, F1."""
    made: list[dict[str, float | list[float]]] = []
    keywords = about.words()
    topic_ = word_topic(keywords)
    for seed in SEEDS:
        held = split(records, about, seed)
        seeds = [sheet for sheet in held.sheets if sheet.is_seed]
        start = process_time()
        first = topic_.fit(seeds, {})
        middle = process_time()
        topic_.fit(held.sheets, {})
        end = process_time()
        right, wrong = curve(topic_, held, 0.0, seed), curve(topic_, held, WRONG, seed)
        made.append(
            {
                "keywords": ranked(lambda text: keywords.count(text.words) / len(text.words), held),
                "first": float(
                    average_precision_score(held.expected, probabilities(first, held.tests))
                ),
                "labelled": labelled(topic_, held),
                "right": right["ap"],
                "wrong": wrong["ap"],
                "f1": right["f1"],
                "times": [middle - start, end - middle],
            }
        )
        print(name, seed, made[-1], flush=True)

    def cell(key: str, place: int | None = None) -> str:
        each = [m[key] if place is None else m[key][place] for m in made]  # type: ignore[index]
        return f"{mean(each):.3f}"  # type: ignore[type-var]

    places = range(len(MARKS))
    ap = [cell("keywords"), cell("first"), *(cell("right", i) for i in places), cell("labelled")]
    times = f"first pack {cell('times', 0)} s, fit {cell('times', 1)} s"
    print(name, *ap, times, flush=True)
    return (
        f"| {name} | {' | '.join([*ap, cell('times', 1)])} |",
        f"| {name} | {' | '.join(cell('wrong', i) for i in places)} |",
        f"| {name} | {' | '.join(cell('f1', i) for i in places)} |",
    )


def report(rows: list[tuple[str, str, str]]) -> list[str]:
    """Return the lines of the report."""
    marks = " | ".join(map(str, MARKS))
    ap, wrong, f1 = zip(*rows, strict=True)
    head = f"| topic | {marks} |", "|---" * (len(MARKS) + 1) + "|"
    return [
        "# Topics from keywords",
        "",
        "Made by `python benchmarks/words.py`; average precision on hosts not seen, means of "
        f"{len(SEEDS)} splits of the hosts and seed pages, {MOST_PAGES:,} pages fetched.",
        "",
        "Columns: share of keywords in a page; first pack (keywords, vectors and the seed page); "
        "after a fit on the pages, with so many answers; the same regression with all true labels; "
        "processor seconds of a fit.",
        "",
        f"| topic | keywords | first pack | {marks} | all labels | fit (s) |",
        "|---" * (len(MARKS) + 5) + "|",
        *ap,
        "",
        f"## {WRONG:.0%} of the answers wrong",
        "",
        *head,
        *wrong,
        "",
        "## F1 at the estimated threshold",
        "",
        *head,
        *f1,
    ]


def main() -> None:
    """Measure all topics and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--topics", default=",".join(TOPICS))
    options = parser.parse_args()
    records = read(options.data)
    chosen = options.topics.split(",")
    lines = report([rows_of(records, name, TOPICS[name]) for name in chosen])
    print(*lines, sep="\n")
    (RESULTS / "words.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
