"""What answers bring to the output of a crawl, from ten words or with a trained pack.

    python benchmarks/answers.py --data FOLDER --scratch FOLDER [--web sites] [--from words pack]
        [--topics food course] [--answers 0 20] [--wrong 0.0] [--pages 500] [--seed 3]

Each crawl is the program's own, `tres crawl` on a recorded web, from the directory of all sites. An
oracle answers what the crawl asks, five pages at a time, from the true labels; the share `--wrong`
of its answers is wrong. With answers a host is asked ten times a second at most, so that they come
while the crawl runs. The data folder holds WEB.warc.gz and WEB-TOPIC.txt. Printed for each
crawl: pages with the label among those fetched, copies of others apart; items in the output; its
precision, recall and F1 by the labels of what was fetched; F1 of the best threshold and average
precision (AP) of the final P(relevant); F1 of the verdicts when pages were fetched, of the last
model alone, of either, and of the last model with those that were relevant when fetched and have a
final P(relevant) of each of BOUNDS or more; and of the items, how many are not what `tres export`
with the final model writes. Crawls lie in the scratch folder; those that ended there are read
again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
LABELS, WRONG = "ORACLE_LABELS", "ORACLE_WRONG"  # variables of the environment
BOUNDS = (0.1, 0.2, 0.3)
DELAY = 0.1  # seconds between two requests to a host
PACKS = ("food", "hardware", "sports")


class Crawl(NamedTuple):
    """A crawl to measure: it starts from `words` or from a `pack`."""

    web: str
    start: str
    topic: str
    answers: int
    wrong: float
    pages: int
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return "-".join(map(str, self))


def oracle(pages: Sequence[Any]) -> list[bool]:
    """Answer by the true labels, some wrong on purpose; called by the crawl."""
    labels = set(Path(os.environ[LABELS]).read_text(encoding="utf-8").split())
    return [(page.url in labels) != _is_wrong(page.url) for page in pages]


def _is_wrong(url: str) -> bool:
    drawn = int.from_bytes(blake2b(url.encode(), digest_size=4).digest(), "big") / 2**32
    return drawn < float(os.environ[WRONG])


def run(crawl: Crawl, data: Path, folder: Path) -> None:
    """Run a crawl, unless it has ended before; raise CalledProcessError if it fails."""
    if (folder / "done").exists():
        return
    from judge import TOPICS  # noqa: PLC0415 - the oracle imports this file too

    folder.mkdir(parents=True, exist_ok=True)
    words = folder / "words.txt"
    line = TOPICS[crawl.web][crawl.topic]
    words.write_text("\n".join(line.split("\n") if "\n" in line else line.split()))
    start = ["topic=" + crawl.topic]
    if crawl.start == "words":
        start += [f"keywords={words}"]
    labels = data / f"{crawl.web}-{crawl.topic}.txt"
    given = {
        "web": "recorded",
        "web_data": data / f"{crawl.web}.warc.gz",
        "web_labels": labels,
        "output": folder / "output.jsonl",
        "pages": crawl.pages,
        "random_seed": crawl.seed,
        "report": 0,
    }
    if crawl.web == "sites":
        given["seed"] = "http://directory.test/"
    if crawl.answers:
        given |= {"answerer": "answers:oracle", "answers_most": crawl.answers}
    arguments = [part for each in start for part in ("-a", each)]
    arguments += [part for name, value in given.items() for part in ("-a", f"{name}={value}")]
    settings = [
        "-s",
        f"DOWNLOAD_DELAY={DELAY if crawl.answers else 0}",
        "-s",
        "CONCURRENT_REQUESTS=1",
        "-s",
        f"LOG_FILE={folder / 'log.txt'}",
    ]
    environment = os.environ | {LABELS: str(labels), WRONG: str(crawl.wrong)}
    environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'benchmarks'}"
    command = [sys.executable, "-m", "scrapy", "crawl", "tres", *arguments, *settings]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)  # noqa: S603 - our own program
    (folder / "done").touch()


def measure(crawl: Crawl, data: Path, folder: Path) -> str:
    """Return the figures of a crawl that has ended."""
    import numpy as np  # noqa: PLC0415 - the oracle starts faster without it
    from sklearn.metrics import (  # noqa: PLC0415
        average_precision_score,
        f1_score,
        precision_recall_curve,
    )

    from tres_scrapy.export.topic_view import topic_view, view_pages  # noqa: PLC0415
    from tres_scrapy.report.record import Record  # noqa: PLC0415
    from tres_scrapy.topic.keyword_topic import THRESHOLD  # noqa: PLC0415

    labels = set((data / f"{crawl.web}-{crawl.topic}.txt").read_text(encoding="utf-8").split())
    output = folder / "output.jsonl"
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    items = {json.loads(line)["url"] for line in lines}
    with Record(folder / "output.run") as record:
        view = topic_view(record)
        pages = list(view_pages(record, view, 0.0))
        final = {each.page.url for each in view_pages(record, view)}
    true = np.array([bool({each.page.url, each.page.final_url} & labels) for each in pages])
    chosen = np.array([each.page.url in items for each in pages])
    p = np.array([each.probability for each in pages])
    hits = int((true & chosen).sum())
    precision, recall = hits / max(1, int(chosen.sum())), hits / max(1, int(true.sum()))
    then, last = np.array([bool(each.page.relevant) for each in pages]), p >= THRESHOLD
    rules = {"fetched": then, "last": last, "either": then | last}
    rules |= {str(bound): last | (then & (p >= bound)) for bound in BOUNDS}
    by_rule = ", ".join(f"{name} {f1_score(true, called):.3f}" for name, called in rules.items())
    curve = precision_recall_curve(true, p)
    best = (2 * curve[0] * curve[1] / np.maximum(curve[0] + curve[1], 1e-9)).max()
    return (
        f"{crawl.web:10} {crawl.start:5} {crawl.topic:9} {crawl.answers:3} answers, "
        f"{crawl.wrong:.0%} wrong, seed {crawl.seed}: found {int(true.sum()):4}, "
        f"items {len(items):4}, precision {precision:.2f}, recall {recall:.2f}, "
        f"F1 {f1_score(true, chosen):.3f}, "
        f"best {best:.3f}, AP {average_precision_score(true, p):.3f}, "
        f"F1 {by_rule}, {len(items ^ final)} items differ"
    )


def main() -> None:
    """Run the crawls, one after the other, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--web", default="sites", choices=["sites", "university"])
    parser.add_argument("--from", dest="starts", nargs="+", default=["words"])
    parser.add_argument("--topics", nargs="+", default=["food", "course", "sports", "hardware"])
    parser.add_argument("--answers", type=int, nargs="+", default=[0, 20])
    parser.add_argument("--wrong", type=float, default=0.0)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    for start in options.starts:
        for topic in options.topics:
            if start == "pack" and topic not in PACKS:
                continue
            for answers in options.answers:
                wrong = options.wrong if answers else 0.0
                crawl = Crawl(
                    options.web, start, topic, answers, wrong, options.pages, options.seed
                )
                folder = options.scratch / crawl.name
                run(crawl, options.data, folder)
                print(measure(crawl, options.data, folder), flush=True)


if __name__ == "__main__":
    main()
