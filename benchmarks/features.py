"""How well the features x(s, a) can separate relevant links in the frontier.

    python benchmarks/features.py [--pages 3000] [--topics hardware sports food] [--seeds 21 22]
                                  [--max 10] [--output FILE]

After a crawl of TRES, a classifier learns the true labels of the waiting links in half of the
domains and ranks the links in the other half, and vice versa. This is what any learner could get
from these features. Prints the share of relevant links among those ranked first: by the classifier,
with feature 7 of new domains as in the paper (0.5) and from inlinks, and by Q. A link that leads to
no page is not relevant.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from tres_scrapy.bench.simulation import Simulation, World
from tres_scrapy.config.config import Config
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.store import Standing
from tres_scrapy.policies.tres import TresPolicy

MOST = 30_000  # most links that are ranked
FIRST = (50, 300)  # numbers of links ranked first
RATIO = FEATURES.index("domain_relevance")
TITLE = f"""\
# What x(s, a) can tell of the links that wait

`python benchmarks/features.py` after a crawl of TRES: how many in a hundred are relevant of the
first {FIRST[0]} / {FIRST[1]} links, as a classifier ranks them that has learned of the other half
of the domains, and as Q does.
"""
HEAD = ("topic", "web", "links to", "waiting", "relevant", "the paper's x", "with inlinks", "by Q")


def crawled(topic: str, seed: int, cap: str, pages: int) -> tuple[World, Simulation]:
    """Return a web and a TRES crawl of the given number of its pages."""
    settings = {"TRES_WEB": "synthetic", "TRES_TOPIC": topic, "TRES_MAX_PER_DOMAIN": cap}
    settings |= dict.fromkeys(("TRES_WEB_SEED", "TRES_RANDOM_SEED"), str(seed))
    config = Config.from_settings(settings | {"TRES_PAGES": str(pages)})
    world = World(config, user_agent="tres")
    simulation = Simulation(world, config)
    simulation.run()
    return world, simulation


def ranked(
    x: NDArray[np.float32], labels: NDArray[np.bool_], half: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return P(relevant) of links [n], each from a classifier trained on the other half."""
    found = np.zeros(len(x))
    for taught, asked in ((half, ~half), (~half, half)):
        classifier = HistGradientBoostingClassifier(max_leaf_nodes=15, random_state=0)
        classifier.fit(x[taught], labels[taught])
        found[asked] = classifier.predict_proba(x[asked])[:, 1]
    return found


def precision(values: NDArray[np.floating], labels: NDArray[np.bool_]) -> str:
    """Return the shares of relevant links among the links with the highest values, in percent."""
    order = np.argsort(-values, kind="stable")
    return " / ".join(f"{100 * labels[order[:first]].mean():.0f}" for first in FIRST)


def rows_of(topic: str, seed: int, cap: str, pages: int) -> Iterator[Sequence[str]]:
    """Yield the table rows of one crawl: links to domains never visited, and other links."""
    world, simulation = crawled(topic, seed, cap, pages)
    random = np.random.default_rng(0)
    store, policy = simulation.crawl.store, simulation.crawl.policy
    assert isinstance(policy, TresPolicy)
    waiting = store.pending_rows()
    waiting = waiting[store.standing(waiting) == Standing.READY]
    rows = random.choice(waiting, min(MOST, len(waiting)), replace=False)
    labels = np.array(world.web.labels([store.url(row) for row in rows.tolist()]), dtype=np.bool_)
    x, new = store.features(rows), store.ledger.never_visited(store.domains(rows))
    paper = x.copy()
    paper[new, RATIO] = 0.5
    half = (random.random(len(store.ledger)) < 0.5)[store.domains(rows)]  # by domains
    values = ranked(paper, labels, half), ranked(x, labels, half), policy.value(x)
    for name, kind in (("new domains", new), ("known domains", ~new)):
        share = f"{100 * labels[kind].mean():.0f}"
        found = [precision(each[kind], labels[kind]) for each in values]
        yield (topic, str(seed), name, f"{len(waiting):,}", share, *found)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=3_000)
    parser.add_argument("--topics", nargs="+", default=["hardware", "sports", "food"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22])
    parser.add_argument("--max", default="10")
    parser.add_argument("--output", type=Path, help="write the table there, too")
    options = parser.parse_args()
    lines = [f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD))]
    print(*lines, sep="\n", flush=True)
    for topic in options.topics:
        for seed in options.seeds:
            for row in rows_of(topic, seed, options.max, options.pages):
                lines.append(f"| {' | '.join(row)} |")
                print(lines[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join([TITLE, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
