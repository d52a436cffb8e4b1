"""How well a topic from keywords and a seed page ranks pages, by the number of answers.

    python benchmarks/words.py --data FOLDER

The folder holds pages, wiki, bbc, news20 and university as .jsonl.xz. The hosts of a topic's
documents are split in two: a crawl's pages come from one half, the average precision (AP) is
measured on 2,500 pages of the other. A random relevant page is the seed. Answers come from the true
labels, 50 at a time or fewer, about the pages that `tres answer` would show; in one run 5 % of them
are wrong. Results are kept in results/words.csv: an interrupted run continues where it stopped.
Writes all of results/words.md, with the crawls of words_crawl.py; without --data, from what was
measured before.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, f1_score
from topic import ROOT

from tres_scrapy.topic.bag import TFIDF
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack
from tres_scrapy.training.baseline import fit_bag
from tres_scrapy.training.document import record_page
from tres_scrapy.training.reader import read_records
from tres_scrapy.training.sample import Example
from tres_scrapy.training.source import Unreadable
from tres_scrapy.training.word_folder import THRESHOLD
from tres_scrapy.training.word_learner import MOST_PAGES, word_topic
from tres_scrapy.training.word_topic import Sheet, TopicFit, WordTopic, questions

RESULTS = Path(__file__).parent / "results"
FILES = ("pages", "wiki", "bbc", "news20", "university")
MARKS = (0, 10, 20, 50, 100, 200)
ROUND = 50  # most answers between two fits
TESTED = 2_500
FEW = 20  # documents of each label, for the transfer to another source
FOREIGN = "news20"
FOREIGN_TOPICS = ("hardware", "sports")
UNLABELLED = 1_000
WRONG = 0.05
LEAST_WORDS = 20
GENERAL = {"pages", "wiki", "bbc", "news20"}

Results = dict[tuple[str, int, str], float]  # by topic, seed and name
Crawl = tuple[str, str, int, int]  # topic, pack or number of answers, web, pages


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
    tests = [tests[row] for row in rng.permutation(len(tests))[:TESTED].tolist()]
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


def labelled(held: Split) -> float:
    """Return the AP of the model of `tres train --classifier tfidf` on all true labels."""
    examples = [
        Example(Text(list(Counter(sheet.words).elements())), Text([]), "", bool(true))
        for sheet, true in zip(held.sheets, held.true, strict=True)
    ]
    return float(
        average_precision_score(held.expected, fit_bag(TFIDF, examples).logits(held.tests))
    )


def measure(records: list[Record], name: str, seed: int) -> dict[str, float]:
    """Return the figures of a topic and a split, by name: AP and F1, seconds of processor time."""
    keywords = TOPICS[name].words()
    topic_ = word_topic(keywords)
    held = split(records, TOPICS[name], seed)
    start = process_time()
    first = topic_.fit([sheet for sheet in held.sheets if sheet.is_seed], {})
    middle = process_time()
    topic_.fit(held.sheets, {})
    end = process_time()
    found = {
        "seconds first": middle - start,
        "seconds fit": end - middle,
        "keywords": ranked(lambda text: keywords.count(text.words) / len(text.words), held),
        "first": float(average_precision_score(held.expected, probabilities(first, held.tests))),
        "labelled": labelled(held),
    }
    for part, wrong in (("right", 0.0), ("wrong", WRONG)):
        for kind, values in curve(topic_, held, wrong, seed).items():
            found |= {f"{part} {kind} {m}": v for m, v in zip(MARKS, values, strict=True)}
    return found


def transfer(records: list[Record], name: str, seed: int) -> dict[str, float]:
    """Return the AP on newsgroups of models from 40 labelled documents of other sources.

    The unlabelled pages are other messages of the same newsgroups.
    """
    rng = np.random.default_rng(seed)
    about = TOPICS[name]
    inside = [r for r in records if r.file in about.files and r.length >= LEAST_WORDS]
    drawn = [inside[row] for row in rng.permutation(len(inside)).tolist()]
    sides: dict[bool, list[Record]] = {True: [], False: []}
    for record in drawn:
        side = sides[bool(record.labels & about.labels)]
        if record.file != FOREIGN and len(side) < FEW:
            side.append(record)
    few = sides[True] + sides[False]
    foreign = [record for record in drawn if record.file == FOREIGN][: UNLABELLED + TESTED]
    tests = [Text(list(record.words.elements())) for record in foreign[UNLABELLED:]]
    expected = np.array([bool(r.labels & about.labels) for r in foreign[UNLABELLED:]])
    sheets = [Sheet(f"#{row}", "", "", record.words) for row, record in enumerate(few)]
    pages = [Sheet(f"{row}", "", "", r.words) for row, r in enumerate(foreign[:UNLABELLED])]
    answers = {f"#{row}": bool(r.labels & about.labels) for row, r in enumerate(few)}
    examples = [
        Example(Text(list(r.words.elements())), Text([]), "", answers[f"#{row}"])
        for row, r in enumerate(few)
    ]
    topic_ = word_topic(about.words())
    found = {"transfer tfidf": fit_bag(TFIDF, examples).logits(tests)}
    for kind, more in (("alone", []), ("unlabelled", pages)):
        fit = topic_.fit([*sheets, *more], answers)
        found[f"transfer {kind}"] = probabilities(fit, tests)
    return {kind: float(average_precision_score(expected, p)) for kind, p in found.items()}


def report(done: Results, crawls: dict[Crawl, float]) -> list[str]:
    """Return the lines of the report."""
    lines = ["# Topics from keywords", "", "Made by `python benchmarks/words.py --data FOLDER`."]
    topics = [name for name in TOPICS if (name, 0, "labelled") in done]
    marks = [str(mark) for mark in MARKS]
    columns = ["keywords", "first", *(f"right ap {m}" for m in marks), "labelled", "seconds fit"]
    if topics:
        lines += [
            *("", "## Pages of hosts not seen", ""),
            f"Average precision; {MOST_PAGES:,} pages fetched. Columns: share of keywords in a "
            "page; first pack (keywords, vectors and the seed page); after a fit on the pages, "
            "with so many answers; `tfidf` of `tres train` with all true labels; "
            "processor seconds of a fit.",
            *table(["keywords", "first", *marks, "all labels", "fit (s)"], topics, columns, done),
            *("", f"{WRONG:.0%} of the answers wrong:"),
            *table(marks, topics, [f"wrong ap {m}" for m in marks], done),
            *("", "F1 at the estimated threshold:"),
            *table(marks, topics, [f"right f1 {m}" for m in marks], done),
        ]
    moved = [name for name in FOREIGN_TOPICS if (name, 0, "transfer tfidf") in done]
    if moved:
        lines += [
            *("", "## Few labels, another source", ""),
            f"Average precision on newsgroups, after up to {FEW} relevant and {FEW} irrelevant "
            f"documents of other sources, without and with {UNLABELLED:,} unlabelled messages. "
            "± is the standard error, where several draws were measured.",
            *table(
                ["`tfidf`", "`words`", "`words`, unlabelled pages"],
                *(moved, [f"transfer {k}" for k in ("tfidf", "alone", "unlabelled")], done),
            ),
        ]
    return [*lines, *crawl_lines(crawls)]


def table(heads: list[str], topics: list[str], names: list[str], done: Results) -> list[str]:
    """Return a table of means over the seeds, ± standard errors; a row is a topic."""
    rows = []
    for topic_ in topics:
        cells = []
        for name in names:
            values = [v for (t, _, n), v in done.items() if (t, n) == (topic_, name)]
            cells.append(mean_error(values) if values else "")
        rows.append(f"| {topic_} | {' | '.join(cells)} |")
    return ["", f"| topic | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|", *rows]


def mean_error(values: list[float], digits: int = 3) -> str:
    """Return a mean, with its standard error if there are several values."""
    error = f" ± {stdev(values) / len(values) ** 0.5:.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{error}"


def crawl_lines(crawls: dict[Crawl, float]) -> list[str]:
    """Return the table of the crawls that words_crawl.py has measured."""
    if not crawls:
        return []
    rows = dict.fromkeys((topic_, name, pages) for topic_, name, _, pages in crawls)
    lines = ["", "## Crawls", "", "Harvest rate by the true labels, in percent, by"]
    lines[-1] += " `python benchmarks/words_crawl.py`: synthetic webs, ten pages a domain."
    lines += ["", "| topic | pages | webs | pack, or answers | harvest |", "|---|---|---|---|---|"]
    for topic_, name, pages in rows:
        each = [100 * v for (t, n, _, p), v in crawls.items() if (t, n, p) == (topic_, name, pages)]
        lines.append(f"| {topic_} | {pages} | {len(each)} | {name} | {mean_error(each, 1)} |")
    return lines


def read_results(file: Path, width: int) -> dict[Any, float]:
    """Return the values of a CSV file by the first `width` columns, {} without it."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        return {
            tuple(int(each) if each.isdigit() else each for each in row[:width]): float(row[width])
            for row in csv.reader(lines)
        }


def main() -> None:
    """Measure what is missing of the topics and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--topics", default=",".join(TOPICS))
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    file = RESULTS / "words.csv"
    done: Results = read_results(file, 3)
    records = read(options.data) if options.data else []
    for seed in range(options.seeds if records else 0):
        for name in options.topics.split(","):
            steps = [("labelled", measure)]
            if name in FOREIGN_TOPICS:
                steps.insert(0, ("transfer tfidf", transfer))
            for part, step in steps:
                if (name, seed, part) not in done:
                    found = {(name, seed, key): v for key, v in step(records, name, seed).items()}
                    done |= found
                    with file.open("a", encoding="utf-8", newline="") as rows:
                        writer = csv.writer(rows, lineterminator="\n")
                        writer.writerows([*key, f"{v:.4f}"] for key, v in found.items())
                    print(found, flush=True)
    lines = report(done, read_results(RESULTS / "words_crawl.csv", 4))
    (RESULTS / "words.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
