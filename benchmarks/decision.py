"""Time of one step of TRES: selection and a Double DQN step over a large frontier.

    python benchmarks/decision.py [--samples 800000] [--leaves 2500]

Prints and writes results/decision.csv: milliseconds on one core, beside what the step would cost
without the tree (Q of every frontier sample, the synchronous method of P 2.5).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from tres_scrapy.agent.ddqn import AgentOptions, DoubleDQN
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.policies.policy import Experience
from tres_scrapy.policies.setup import LearningOptions, Setup
from tres_scrapy.policies.tres import TresPolicy

LINKS = 40
DOMAINS = 5_000
RESULTS = Path(__file__).parent / "results"


def grown_policy(samples: int, leaves: int, seed: int = 0) -> tuple[TresPolicy, SampleStore]:
    """Return a policy whose tree has grown to `leaves` leaves over `samples` frontier samples."""
    random = np.random.default_rng(seed)
    store = SampleStore(DomainLedger())
    learning = LearningOptions(exploration_steps=0)
    policy = TresPolicy(store, Setup(seed, learning=learning))
    step = 0
    while len(policy.tree) < leaves or store.pending < samples:
        count = LINKS if store.pending < samples else 0
        x = random.random(8).astype(np.float32)
        experience = Experience(step, x, float(random.random() < x[5]))
        if len(policy.tree) < leaves:
            policy.observe(experience)
        hosts = random.integers(DOMAINS, size=count).tolist()
        urls = [f"http://d{host}.test/{step}/{i}" for i, host in enumerate(hosts)]
        actions = random.random((count, 3)).astype(np.float32)
        policy.expand(experience, store.add(NO_PARENT, urls, [""] * count, actions))
        step += 1
    return policy, store


def milliseconds(action: Callable[[], object], repeats: int) -> list[float]:
    """Return the time of each of `repeats` calls, the first few left out."""
    times = []
    for _ in range(repeats + 5):
        start = perf_counter()
        action()
        times.append(1000 * (perf_counter() - start))
    return times[5:]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=800_000)
    parser.add_argument("--leaves", type=int, default=2_500)
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    policy, store = grown_policy(options.samples, options.leaves)
    agent, everything = DoubleDQN(AgentOptions(), seed=0), np.arange(len(store))
    rows: list[tuple[object, ...]] = [
        ("leaves", len(policy.tree), ""),
        ("frontier samples", store.pending, ""),
    ]
    for name, action, repeats in (
        ("selection", policy.select, options.repeats),
        ("Double DQN step", policy.learn, options.repeats),
        ("Q of every sample", lambda: agent.q_values(store.features(everything)), 5),
    ):
        times = milliseconds(action, repeats)
        rows.append((f"{name} (ms, mean and 99th percentile)", *_two(times)))
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "decision.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    for row in rows:
        print(*row, sep="\t")


def _two(times: list[float]) -> tuple[float, float]:
    return round(float(np.mean(times)), 3), round(float(np.percentile(times, 99)), 3)


if __name__ == "__main__":
    main()
