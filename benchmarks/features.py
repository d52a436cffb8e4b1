"""How well the features x(s, a), P(relevant | link) and Q separate relevant links in the frontier.

    python benchmarks/features.py [--pages 3000] [--topics hardware sports food] [--seeds 21 22]
                                  [--max 10] [-s NAME=VALUE]... [--output FILE]

After a crawl of TRES of the synthetic web, or of the one that `-s` names, a classifier learns the
true labels of the waiting links in half of the domains and ranks the links in the other half, and
vice versa. This is what any learner could get from these features. Prints the average precision of
this ranking by the paper's eight features, and with feature 9, P(relevant | link); of P alone, and
of Q. A link that leads to no page is not relevant.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score

from tres_scrapy.agent.tres import TresPolicy
from tres_scrapy.config.config import Config
from tres_scrapy.frontier.feature import KNOWN_DOMAIN, LINK
from tres_scrapy.frontier.store import Eligibility
from tres_scrapy.lab.simulation import Simulation, World

MOST = 30_000  # most links that are ranked
TITLE = """\
# What x(s, a) can tell of the links that wait

`python benchmarks/features.py` after a crawl of TRES: average precision of the links that wait, as
a classifier ranks them that has learned of the other half of the domains, by P(relevant | link),
and by Q.
"""
HEAD = ("topic", "web", "links to", "waiting", "relevant, %", "eight features", "nine", "P", "Q")


def crawled(topic: str, seed: int, options: argparse.Namespace) -> tuple[World, Simulation]:
    """Return a web and a TRES crawl of the given number of its pages."""
    settings = {"TRES_WEB": "synthetic", "TRES_TOPIC": topic, "TRES_MAX_PER_DOMAIN": options.max}
    settings |= dict.fromkeys(("TRES_WEB_SEED", "TRES_RANDOM_SEED"), str(seed))
    settings |= {"TRES_PAGES": str(options.pages), **dict(options.settings)}
    config = Config.from_settings(settings)
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


def rows_of(topic: str, seed: int, options: argparse.Namespace) -> Iterator[Sequence[str]]:
    """Yield the table rows of one crawl: links to domains never visited, and other links."""
    world, simulation = crawled(topic, seed, options)
    random = np.random.default_rng(0)
    store, policy = simulation.crawl.store, simulation.crawl.policy
    assert isinstance(policy, TresPolicy)
    waiting = store.pending_rows()
    waiting = waiting[store.eligibility(waiting) == Eligibility.READY]
    rows = random.choice(waiting, min(MOST, len(waiting)), replace=False)
    labels = np.array(world.web.labels([store.url(row) for row in rows.tolist()]), dtype=np.bool_)
    x = store.features(rows)
    half = (random.random(len(store.ledger)) < 0.5)[store["domain"].take(rows)]  # by domains
    eight = np.delete(x, LINK, axis=1)
    values = ranked(eight, labels, half), ranked(x, labels, half), x[:, LINK], policy.value(x)
    new = x[:, KNOWN_DOMAIN] < 1
    for name, kind in (("new domains", new), ("known domains", ~new)):
        if labels[kind].any():
            found = [f"{average_precision_score(labels[kind], each[kind]):.2f}" for each in values]
            share = f"{100 * labels[kind].mean():.0f}"
            yield (topic, str(seed), name, f"{len(waiting):,}", share, *found)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=3_000)
    parser.add_argument("--topics", nargs="+", default=["hardware", "sports", "food"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22])
    parser.add_argument("--max", default="10")
    parser.add_argument(
        "-s",
        "--settings",
        metavar="NAME=VALUE",
        type=lambda text: tuple(text.split("=", 1)),
        action="append",
        default=[],
    )
    parser.add_argument("--output", type=Path, help="write the table there, too")
    options = parser.parse_args()
    lines = [f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD))]
    print(*lines, sep="\n", flush=True)
    for topic in options.topics:
        for seed in options.seeds:
            for row in rows_of(topic, seed, options):
                lines.append(f"| {' | '.join(row)} |")
                print(lines[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join([TITLE, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
