"""Compare the time of a choice by TRES and by the synchronous method, on the same frontier.

    python benchmarks/decision.py [--samples 10000 100000 800000] [--repeats 200]

The tree has a leaf for each 320 samples, as in Figure 4 (800,000 samples, 2,500 leaves), and
samples wait in all of them. Prints and writes results/decision.csv: processor time in
milliseconds on one thread, with the default representatives, with 1 per leaf, and with Q of every
sample (P 2.5), and the ratio of the last to the others. Each is the median of many choices of one
method in a row: after a choice that reads the whole frontier, the next choice is slow too.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable
from pathlib import Path
from time import process_time

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is imported

import numpy as np

from tres_scrapy.agent.policy import Experience
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.tres import TresPolicy
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.lab.policies.variant import SynchronousPolicy

LINKS = 40
DOMAINS = 5_000
SAMPLES_OF_LEAF = 320
WARM_UP = 20  # repetitions that are not counted
RESULTS = Path(__file__).parent / "results"
FIELDS = (
    "samples",
    "leaves",
    "tres_ms",
    "tres_1_ms",
    "synchronous_ms",
    "ratio",
    "ratio_1",
    "learning_step_ms",
)


def grown_policies(samples: int, seed: int = 0) -> tuple[TresPolicy, TresPolicy, SynchronousPolicy]:
    """Return three policies with grown trees over one store of `samples` frontier samples.

    Features 4 to 6 have the same distribution in experiences and samples, and the other features
    are constant, so every leaf gets its share of the samples.
    """
    random = np.random.default_rng(seed)
    store = SampleStore(DomainLedger())
    setups = [
        PolicyInputs(
            seed,
            learning=LearningOptions(representatives=each, exploration_steps=0),
        )
        for each in (LearningOptions.representatives, 1)
    ]
    several, one = (TresPolicy(store, setup) for setup in setups)
    every = SynchronousPolicy(store, setups[0])
    leaves, step = samples // SAMPLES_OF_LEAF, 0
    while len(several.tree) < leaves or store.pending < samples:
        count = LINKS if store.pending < samples else 0
        x = np.array([0, 0, 0, *random.random(3), 0.5, 0.5, 0.5], dtype=np.float32)
        experience = Experience(step, x, float(random.random() < x[5]))
        hosts = random.integers(DOMAINS, size=count).tolist()
        urls = [f"http://d{host}.test/{step}/{i}" for i, host in enumerate(hosts)]
        actions = random.random((count, 3)).astype(np.float32)
        rows = store.add(NO_PARENT, Outlinks(urls, [""] * count, actions))
        for policy in (several, one, every):
            if len(several.tree) < leaves:
                policy.observe(experience)
            policy.expand(experience, rows)
        step += 1
    assert len(several.tree.pool.occupied()) > 0.9 * leaves
    return several, one, every


def milliseconds(do: Callable[[], object], repeats: int) -> float:
    """Return the median processor time of an action, in milliseconds."""
    times = np.zeros(WARM_UP + repeats)
    for turn in range(len(times)):
        start = process_time()
        do()
        times[turn] = 1000 * (process_time() - start)
    return float(np.median(times[WARM_UP:]))


def measure(samples: int, repeats: int) -> dict[str, float]:
    """Return the figures of one frontier."""
    several, one, every = grown_policies(samples)
    tres, tres_1, synchronous = (
        milliseconds(policy.select, repeats) for policy in (several, one, every)
    )
    learning = milliseconds(several.learn, repeats)
    ratios = synchronous / tres, synchronous / tres_1
    figures = (samples, len(several.tree), tres, tres_1, synchronous, *ratios, learning)
    return dict(zip(FIELDS, (round(figure, 3) for figure in figures), strict=True))


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, nargs="+", default=[10_000, 100_000, 800_000])
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    print(*FIELDS, sep="\t")
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "decision.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for samples in options.samples:
            row = measure(samples, max(1, options.repeats // (1 if samples <= 100_000 else 5)))
            print(*row.values(), sep="\t", flush=True)
            writer.writerow(row)


if __name__ == "__main__":
    main()
