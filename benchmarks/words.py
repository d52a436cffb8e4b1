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
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, f1_score
from topic import ROOT

from tres_scrapy.page.copies import fingerprint
from tres_scrapy.page.document_file import Unreadable, read_records, record_page
from tres_scrapy.page.text import Page
from tres_scrapy.topic.classifier import TFIDF, Text
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_topic import KeywordTopic, PageWords, TopicFit
from tres_scrapy.topic.question import questions
from tres_scrapy.topic.topic_folder import add_answers
from tres_scrapy.topic.topic_learner import MAX_PAGES, TopicLearner, open_topic
from tres_scrapy.training.fitting import fit_bag
from tres_scrapy.training.sample import Example

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
FETCHED, TOLD = 10_000, 50  # pages and answers of the refit whose time is taken
TIMED = "food"
PAGE_URL = "http://example.test/"
FIRST_PACK = """
import sys
from pathlib import Path
from words import TOPICS
from tres_scrapy.topic.topic_learner import open_topic
open_topic(sys.argv[2], TOPICS[sys.argv[2]].words(), Path(sys.argv[1], "first"))
"""

Step = Callable[[list["Record"], str, int], dict[str, float]]
Results = dict[tuple[str, int, str], float]  # by topic, seed and name
Crawl = tuple[str, str, str, int, int]  # web, topic, pack or number of answers, seed, pages


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

    sheets: list[PageWords]
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
    pool = [pool[row] for row in rng.permutation(len(pool))[:MAX_PAGES].tolist()]
    tests = [record for record in inside if not half[record.host]]
    tests = [tests[row] for row in rng.permutation(len(tests))[:TESTED].tolist()]
    true = np.array([bool(record.labels & about.labels) for record in pool])
    first = int(rng.choice(np.flatnonzero(true)))
    sheets = [PageWords(f"{row}", "", "", r.words, row == first) for row, r in enumerate(pool)]
    texts = [Text(list(record.words.elements())) for record in tests]
    expected = np.array([bool(record.labels & about.labels) for record in tests])
    return Split(sheets, true, texts, expected)


def curve(topic_: KeywordTopic, held: Split, wrong: float, seed: int) -> dict[str, list[float]]:
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
        for sheet, *_ in questions(fit.judge, held.sheets, answers, count):
            truth = bool(held.true[int(sheet.url)])
            answers[sheet.url] = truth != bool(rng.random() < wrong)


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
    topic_ = KeywordTopic.in_english(keywords)
    held = split(records, TOPICS[name], seed)
    start = process_time()
    first = topic_.fit([sheet for sheet in held.sheets if sheet.is_seed], {})
    middle = process_time()
    topic_.fit(held.sheets, {})
    end = process_time()
    found = {
        "seconds first": middle - start,
        "seconds fit": end - middle,
        "keywords": ranked(
            lambda text: keywords.counts(text.words).total() / len(text.words), held
        ),
        "first": float(average_precision_score(held.expected, probabilities(first, held.tests))),
        "labelled": labelled(held),
    }
    for part, wrong in (("right", 0.0), ("wrong", WRONG)):
        for kind, values in curve(topic_, held, wrong, seed).items():
            found |= {f"{part} {kind} {m}": v for m, v in zip(MARKS, values, strict=True)}
    return found


def times(records: list[Record], name: str) -> dict[str, float]:
    """Return seconds of processor time: of a new process for the first pack, of a late refit."""
    about = TOPICS[name]
    keywords = about.words()
    inside = [r for r in records if r.file in about.files][:FETCHED]
    with TemporaryDirectory() as place:
        before = getrusage(RUSAGE_CHILDREN)
        command = [sys.executable, "-c", FIRST_PACK, place, name]
        subprocess.run(command, cwd=Path(__file__).parent, check=True)  # noqa: S603 - our own code
        after = getrusage(RUSAGE_CHILDREN)
        first = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        open_topic(name, keywords, Path(place))
        learner = TopicLearner(Path(place), name, keywords)
        for row, record in enumerate(inside):
            page = Page(f"{PAGE_URL}{row}", "", " ".join(record.words.elements()), ())
            learner.keep(page, fingerprint(page), is_seed=row == 0)
        learner.learn()
        answers = {}
        for sheet, *_ in learner.questions(TOLD):
            labels = inside[int(sheet.url.removeprefix(PAGE_URL))].labels
            answers[sheet.url] = bool(labels & about.labels)
        start = process_time()
        add_answers(learner.folder.answers, answers)
        learner.learn()
        return {"time first": first, "time refit": process_time() - start}


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
    sheets = [PageWords(f"#{row}", "", "", record.words) for row, record in enumerate(few)]
    pages = [PageWords(f"{row}", "", "", r.words) for row, r in enumerate(foreign[:UNLABELLED])]
    answers = {f"#{row}": bool(r.labels & about.labels) for row, r in enumerate(few)}
    examples = [
        Example(Text(list(r.words.elements())), Text([]), "", answers[f"#{row}"])
        for row, r in enumerate(few)
    ]
    topic_ = KeywordTopic.in_english(about.words())
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
            "",
            "## Pages of hosts not seen",
            "",
            f"Average precision; {MAX_PAGES:,} pages fetched. Columns: share of keywords in a "
            "page; first pack (keywords, vectors and the seed page); after a fit on the pages, "
            "with so many answers; `tfidf` of `tres train` with all true labels; "
            "processor seconds of a fit.",
            *table(["keywords", "first", *marks, "all labels", "fit (s)"], topics, columns, done),
            "",
            f"{WRONG:.0%} of the answers wrong:",
            *table(marks, topics, [f"wrong ap {m}" for m in marks], done),
            "",
            "F1 at the estimated threshold:",
            *table(marks, topics, [f"right f1 {m}" for m in marks], done),
        ]
    moved = [name for name in FOREIGN_TOPICS if (name, 0, "transfer tfidf") in done]
    if moved:
        lines += [
            "",
            "## Few labels, another source",
            "",
            f"Average precision on newsgroups, after up to {FEW} relevant and {FEW} irrelevant "
            f"documents of other sources, without and with {UNLABELLED:,} unlabelled messages. "
            "± is the standard error, where several draws were measured.",
            *table(
                ["`tfidf`", "`words`", "`words`, unlabelled pages"],
                moved,
                [f"transfer {k}" for k in ("tfidf", "alone", "unlabelled")],
                done,
            ),
        ]
    if (TIMED, 0, "time refit") in done:
        first, refit = (done[TIMED, 0, f"time {each}"] for each in ("first", "refit"))
        lines += [
            "",
            "## Processor time",
            "",
            f"The first pack takes {first:.1f} s, with the start of its process. A refit after "
            f"{FETCHED:,} pages takes {refit:.2f} s, with {TOLD} new answers and all that it "
            f"writes ({TIMED}).",
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
    lines = ["", "## Crawls", "", "Harvest rate by the true labels, in percent, by"]
    lines[-1] += (
        " `python benchmarks/words_crawl.py`: runs with different random seeds, on the synthetic "
        "web with ten pages a domain and another web each. The labelled packs of food and sports "
        "were trained on documents of the wiki too."
    )
    for web, pages in dict.fromkeys((web, pages) for web, *_, pages in crawls):
        part = {(t, n, s): v for (w, t, n, s, p), v in crawls.items() if (w, p) == (web, pages)}
        topics = list(dict.fromkeys(each for each, *_ in part))
        lines += ["", f"{web.capitalize()}, {pages:,} pages:", ""]
        lines += [f"| pack, or answers | {' | '.join(topics)} | runs |"]
        lines += ["|---" * (len(topics) + 2) + "|"]
        for name in dict.fromkeys(name for _, name, _ in part):
            each = [[100 * v for k, v in part.items() if k[:2] == (t, name)] for t in topics]
            cells = [mean_error(values, 1) if values else "" for values in each]
            lines.append(f"| {name} | {' | '.join(cells)} | {max(map(len, each))} |")
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
            steps: list[tuple[str, Step]] = [("labelled", measure)]
            if name in FOREIGN_TOPICS:
                steps.insert(0, ("transfer tfidf", transfer))
            if (name, seed) == (TIMED, 0):
                steps.append(("time refit", lambda records, name, _: times(records, name)))
            for part, step in steps:
                if (name, seed, part) not in done:
                    found = {(name, seed, key): v for key, v in step(records, name, seed).items()}
                    done |= found
                    with file.open("a", encoding="utf-8", newline="") as rows:
                        writer = csv.writer(rows, lineterminator="\n")
                        writer.writerows([*key, f"{v:.4f}"] for key, v in found.items())
                    print(found, flush=True)
    lines = report(done, read_results(RESULTS / "words_crawl.csv", 5))
    (RESULTS / "words.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
