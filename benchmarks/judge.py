"""How well a topic from ten words and a few answers finds its pages, beside a simple judge.

    python benchmarks/judge.py --data FOLDER --scratch FOLDER [--draws 2] [--webs sites,university]
    python benchmarks/judge.py --data FOLDER --scratch FOLDER --webs sites --judges pack --first 10

Both get the same keywords, the same 500 pages without labels, and 0, 10, 20 and 40 answers from the
true labels, five at a time, about the pages that each asks for. They are measured on 3,000 other
pages of the same web, or all: average precision (AP), the best F1 of any threshold, and F1 at their
own threshold. The data folder holds sites.warc.gz, university.warc.gz and lists of their labels,
wiki.jsonl.xz and news20.jsonl.xz; parsed pages are kept in the scratch folder.

The simple judge: BM25 of the keywords and the cosine of the page to them are a first score; the
best 20 pages are taken for relevant, the lower two thirds for not, and a logistic regression learns
them from TF-IDF; answers count two to three times.

The judge `pack` is a topic pack that TRES brings, corrected by answers, on the topics that have
one. Its line "alone" is the pack with its own threshold; without answers it differs from that where
the pack is blind, and its keywords count too.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from fastwarc.warc import ArchiveIterator, WarcRecordType
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve
from topic import ROOT

from tres_scrapy.page.document_file import Unreadable, read_records, record_page
from tres_scrapy.page.text import Page, read_page
from tres_scrapy.topic.classifier import Text, WordVectors
from tres_scrapy.topic.corrected_pack import odds_of
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_topic import THRESHOLD, KeywordTopic, PageWords
from tres_scrapy.topic.pack import Pack, text_of
from tres_scrapy.topic.question import questions
from tres_scrapy.topic.shipped import VECTORS, packs, shipped_models
from tres_scrapy.topic.topic_learner import keywords_of

Numbers = NDArray[np.float64]
Steps = Iterator[tuple[Numbers, float]]  # scores of all pages and the threshold, at each mark

MARKS = (0, 10, 20, 40)
ROUND = 5  # answers at a time
BATCH = 256  # pages that a pack judges at a time
SEEN, TESTED = 500, 3_000
ARCHIVES = ("sites", "university")
LONGEST = 8_000  # characters that the simple judge reads
SPACE = "astronomy planet star telescope galaxy orbit moon solar comet space"
SPORTS = "sport football baseball hockey team league championship player coach match"
FOOD = "drink wine cheese spicy chefs meat snacks food recipe cooking"
LISTS = ROOT / "benchmarks" / "university_keywords"
TOPICS = {
    "sites": {
        "food": FOOD,
        "course": "course homework assignment lecture syllabus midterm exam textbook instructor "
        "grading",
        "sports": SPORTS,
        "hardware": "electronics arduino circuit microcontroller sensor soldering voltage computer "
        "keyboard monitor",
        "nature": "nature wildlife birds species habitat ecology plants insects forest animals",
    },
    "university": {
        name: (LISTS / f"{name}.txt").read_text(encoding="utf-8")
        for name in ("course", "faculty", "project", "student")
    },
    "wiki": {
        "food": FOOD,
        "sports": SPORTS,
        "birds": "bird birds feathers nest eggs species plumage wings beak migration",
        "astronomy": SPACE,
    },
    "news20": {
        "sports": SPORTS,
        "hardware": "hardware computer motherboard processor memory disk drive monitor keyboard "
        "graphics",
        "medicine": "disease doctor patient treatment symptoms drug medical infection therapy diet",
        "autos": "car engine wheel tire brake driver vehicle ford honda gasoline",
        "space": SPACE,
    },
}
LABELS = {
    "food": "Everyday_life.Food_and_agriculture Everyday_life.Drink",
    "sports": "rec.sport.baseball rec.sport.hockey Everyday_life.Sports "
    "Everyday_life.Sports_events Everyday_life.Sports_teams People.Sports_and_games_people",
    "hardware": "comp.sys.ibm.pc.hardware comp.sys.mac.hardware",
    "birds": "Science.Biology.Birds",
    "astronomy": "Science.Physics.Space_Astronomy",
    "space": "sci.space",
    "medicine": "sci.med",
    "autos": "rec.autos",
}


class Web(NamedTuple):
    """The pages of a web as both judges read them, and the topic of each."""

    pages: list[PageWords]
    texts: list[str]
    topics: list[str]


def read(name: str, data: Path, scratch: Path) -> Web:
    """Return a web, from the scratch folder if it was read before."""
    kept = scratch / f"judge-{name}.json"
    if kept.exists():
        pages, *others = json.loads(kept.read_text(encoding="utf-8"))
        return Web([PageWords(*page) for page in pages], *others)
    found = archived(name, data) if name in ARCHIVES else documents(name, data)
    web = Web([], [], [])
    for number, (page, topic) in enumerate(found):
        url = page.url if "://" in page.url else f"http://{name}.test/#{number}"
        words = text_of(page).counts()
        web.pages.append(PageWords(url, page.title, "", words))
        web.texts.append(f"{page.title} {page.text[:LONGEST]}".lower())
        web.topics.append(topic)
    kept.write_text(json.dumps(web), encoding="utf-8")
    return web


def archived(name: str, data: Path) -> Iterator[tuple[Page, str]]:
    """Yield the pages of an archive, and the topic of each, "" for none."""
    label = {
        url: topic
        for topic in TOPICS[name]
        for url in (data / f"{name}-{topic}.txt").read_text(encoding="utf-8").split()
    }
    with (data / f"{name}.warc.gz").open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response):
            url = record.headers["WARC-Target-URI"]
            yield read_page(record.reader.read().decode("utf8", "replace"), url), label.get(url, "")


def documents(name: str, data: Path) -> Iterator[tuple[Page, str]]:
    """Yield the documents of a file, and the topic of each, "" for none."""
    wanted = {topic: {topic, *LABELS[topic].split()} for topic in TOPICS[name]}
    for record in read_records(data / f"{name}.jsonl.xz"):
        if not isinstance(record, Unreadable):
            labels = {*(record.get("categories") or ()), str(record.get("label") or "")}
            own = (topic for topic, names in wanted.items() if labels & names)
            yield record_page(record), next(own, "")


def ours(
    web: Web,
    seen: NDArray[np.int64],
    tested: NDArray[np.int64],
    keywords: KeywordSet,
    true: NDArray[np.bool_],
    *,
    edge: float = 0.0,
    doubts: bool = False,
) -> Steps:
    """Yield P(relevant) of all pages, 0 where it is not tested, at each mark."""
    topic = KeywordTopic.in_english(keywords)
    found = np.zeros(len(web.pages))
    pages, row = [web.pages[each] for each in seen], {web.pages[each].url: each for each in seen}
    answers: dict[str, bool] = {}
    fit = topic.fit(pages, answers, edge, doubts=doubts)
    while True:
        if len(answers) in MARKS:
            found[tested] = fit.judge(web.pages[each] for each in tested)
            yield found, THRESHOLD
        if len(answers) >= MARKS[-1]:
            return
        asked = questions(fit.judge, pages, answers, ROUND)
        answers |= {page.url: bool(true[row[page.url]]) for page, *_ in asked}
        fit = topic.fit(pages, answers, edge, doubts=doubts)


def corrected(
    web: Web,
    seen: NDArray[np.int64],
    tested: NDArray[np.int64],
    topic: str,
    true: NDArray[np.bool_],
) -> Steps:
    """Yield P(relevant) by a shipped pack with its threshold, then as `ours` does with it."""
    pack = Pack.load(packs()[topic])
    found, chosen = np.zeros(len(web.pages)), np.concatenate([seen, tested])
    pages = list(web.pages)
    for start in range(0, len(chosen), BATCH):
        rows = chosen[start : start + BATCH]
        found[rows] = pack.probabilities([Text.of(web.texts[each]) for each in rows])
    for row in chosen:
        pages[row] = pages[row]._replace(prior=float(odds_of(found[row])))
    yield found, pack.threshold
    edge, keywords = float(odds_of(pack.threshold)), keywords_of(pack)
    yield from ours(web._replace(pages=pages), seen, tested, keywords, true, edge=edge, doubts=True)


class Simple:
    """The simple judge of a web, after 500 pages of it."""

    def __init__(self, web: Web, seen: NDArray[np.int64]) -> None:
        self._web = web
        self._seen = seen
        bag = TfidfVectorizer(
            sublinear_tf=True, min_df=2, stop_words="english", max_features=40_000
        ).fit([web.texts[each] for each in seen])
        self._bag = bag.transform(web.texts)
        self._vectors = WordVectors.load(shipped_models() / VECTORS)
        found = [Counter(re.findall(r"[a-z]{2,}", text)) for text in web.texts]
        counts = [{w: n for w, n in each.items() if w in self._vectors} for each in found]
        seen_in = Counter(word for each in counts for word in each)
        self._mean = np.stack([self._meaning(each, seen_in, len(counts)) for each in counts])

    def _meaning(self, counts: dict[str, int], seen_in: Counter[str], size: int) -> Numbers:
        if not counts:
            return np.zeros(self._vectors.matrix.shape[1])
        rarity = [(1 + np.log(n)) * np.log(size / (1 + seen_in[w])) for w, n in counts.items()]
        mean = np.array(rarity) @ self._vectors.unit(counts)
        return np.asarray(mean / (np.linalg.norm(mean) + 1e-9))

    def steps(self, keywords: list[str], true: NDArray[np.bool_]) -> Steps:
        """Yield the scores of all pages at each mark."""
        first = self._first(list(dict.fromkeys(" ".join(keywords).split())))
        answers: dict[int, bool] = {}
        scores = self._learn(first, answers)
        while True:
            if len(answers) in MARKS:
                yield scores, 0.0
            if len(answers) >= MARKS[-1]:
                return
            left = [r for r in self._seen[np.argsort(-scores[self._seen])] if r not in answers]
            ordered = np.sort(scores[self._seen])
            edge = ordered[-max(5, int((ordered > 0).sum()))]
            near = sorted(left[2:], key=lambda r: abs(scores[r] - edge))
            answers |= {r: bool(true[r]) for r in [*left[:2], *near[:3]]}
            scores = self._learn(first, answers)

    def _first(self, keywords: list[str]) -> Numbers:
        stems = [re.sub(r"(ies|s|y|e)$", "", word) for word in keywords]
        patterns = [re.compile(rf"\b{re.escape(each)}") for each in stems]
        found = np.array([[len(p.findall(t)) for p in patterns] for t in self._web.texts], float)
        length = np.array([len(text.split()) for text in self._web.texts])
        rarity = np.log(len(self._seen) / (1 + (found[self._seen] > 0).sum(0)))
        slow = 1.2 * (0.25 + 0.75 * length[:, None] / length[self._seen].mean())
        close = self._mean @ self._vectors.unit(keywords).T
        close = (close - close[self._seen].mean(0)) / (close[self._seen].std(0) + 1e-9)
        parts = [
            (rarity * found / (found + slow)).sum(1),
            close.mean(1),
            np.sort(close, 1)[:, -3:].mean(1),
        ]
        seen = [part[self._seen] for part in parts]
        scaled = [(p - s.mean()) / (s.std() + 1e-9) for p, s in zip(parts, seen, strict=True)]
        return np.asarray(np.sum(scaled, axis=0))

    def _learn(self, first: Numbers, answers: dict[int, bool]) -> Numbers:
        others = [r for r in self._seen[np.argsort(-first[self._seen])] if r not in answers]
        yes, no = ([r for r, answer in answers.items() if answer is k] for k in (True, False))
        good = yes * 2 + others[: max(0, 20 - 2 * len(yes))]
        bad = no * 3 + others[len(others) // 3 :]
        model = LogisticRegression(C=3, class_weight="balanced", max_iter=300)
        model.fit(self._bag[good + bad], [1] * len(good) + [0] * len(bad))
        return np.asarray(model.decision_function(self._bag))


def figures(true: NDArray[np.bool_], scores: Numbers, threshold: float) -> list[float]:
    """Return AP, the best F1 and F1 at the threshold."""
    precision, recall, _ = precision_recall_curve(true, scores)
    best = (2 * precision * recall / np.maximum(precision + recall, 1e-9)).max()
    own = f1_score(true, scores >= threshold)
    return [float(average_precision_score(true, scores)), float(best), float(own)]


def measure(web: Web, topics: dict[str, str], draw: int, names: list[str]) -> dict[str, Any]:
    """Return the figures [topics, marks, 3] by judge."""
    rng = np.random.default_rng(draw)
    size = len(web.pages)
    seen = rng.choice(size, SEEN, replace=False)
    rest = np.setdiff1d(np.arange(size), seen)
    tested = rng.choice(rest, min(TESTED, len(rest)), replace=False)
    judges: dict[str, Callable[[list[str], NDArray[np.bool_]], Steps]] = {}
    if "ours" in names:
        judges["ours"] = lambda keywords, true: ours(
            web, seen, tested, KeywordSet.parse(keywords), true
        )
    if "simple" in names:
        judges["simple"] = Simple(web, seen).steps
    if "pack" in names:
        judges["pack"] = lambda topic, true: corrected(web, seen, tested, topic[0], true)
    found: dict[str, Any] = {}
    for name, judge in judges.items():
        found[name] = []
        for topic in topics_of(name, topics):
            line = topics[topic]
            true = np.array([each == topic for each in web.topics])
            keywords = line.split("\n") if "\n" in line else line.split()
            keywords = [topic] if name == "pack" else keywords
            steps = [figures(true[tested], s[tested], at) for s, at in judge(keywords, true)]
            found[name].append(steps)
    return found


def topics_of(judge: str, topics: Mapping[str, str]) -> list[str]:
    """Return the topics that a judge knows."""
    return [each for each in topics if judge != "pack" or each in packs()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--webs", default="sites,university")
    parser.add_argument("--judges", default="simple,ours")
    options = parser.parse_args()
    names = options.judges.split(",")
    print(
        "AP / best F1 / F1 at the own threshold, means over topics; then by topic AP, F1 at the own"
    )
    for name in options.webs.split(","):
        web, start = read(name, options.data, options.scratch), process_time()
        chosen = range(options.first, options.first + options.draws)
        draws = [measure(web, TOPICS[name], draw, names) for draw in chosen]
        for judge in draws[0]:
            mean = np.mean([each[judge] for each in draws], axis=0)  # [topics, marks, 3]
            topics = topics_of(judge, TOPICS[name])
            marks = ["alone", *MARKS] if judge == "pack" else MARKS
            for place, mark in enumerate(marks):
                total = " / ".join(f"{value:.3f}" for value in mean[:, place].mean(0))
                each = ", ".join(
                    f"{topic} {ap:.2f} {own:.2f}"
                    for topic, (ap, _, own) in zip(topics, mean[:, place], strict=True)
                )
                print(f"{name:10} {judge:6} {mark:>5} answers  {total}  {each}", flush=True)
        print(f"{process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
