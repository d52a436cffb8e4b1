"""What each part of the agent brings: TRES without a part of it.

"siblings believed" is what the links of one page say of each other before the crawl has learned it,
"places" is where links stand on their page: words around, heading.

    python benchmarks/parts.py [--data FOLDER --models FOLDER] [--seeds 1 2 3] [--pages 500]

Crawls are simulated, one request at a time, without MAX: of the generated web and, with --data, of
the sites in sites.warc.gz with the labels sites-TOPIC.txt, from their directory. --models holds the
packs; `course` is not in this repository (see real_webs.py). Printed are relevant pages by the
web's labels, means over the seeds (lowest); a seed of the generated web is another web.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is imported

import numpy as np
from comparing.simulation import World
from numpy.typing import NDArray

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.policy import Decision
from tres_scrapy.agent.policy_inputs import Kind, PolicyInputs
from tres_scrapy.agent.q_learner import QLearner
from tres_scrapy.agent.tres import TresPolicy
from tres_scrapy.config.config import Config
from tres_scrapy.config.learning import LinkOptions
from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import LINK
from tres_scrapy.frontier.ledger import Availability
from tres_scrapy.frontier.sampling import Representatives
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.links.model import KNOWN, NO_PRIOR, LinkPrior

Values = NDArray[np.float32]


class ByLink(QLearner):
    """Takes P(relevant) of a link for its value; learns nothing."""

    def rate(self, x: Values) -> Values:
        """Return P(relevant)."""
        return x[:, LINK]

    def learn(self) -> float | None:
        """Take no step."""
        return None


class WithoutNetwork(TresPolicy):
    """Chooses by the link model and what hosts may still bring."""

    def _make_learner(self, setup: PolicyInputs) -> QLearner:
        return ByLink(self._store, self.features, setup, self._random, prior=True)


class WithoutTree(TresPolicy):
    """Rates the links with the highest P(relevant) only, none that leaves represent."""

    def _select_link(
        self, links: LinkLearner, drawn: Representatives, available: Availability
    ) -> Decision | None:
        listed = len(self._best.ready(available))
        fewer = Representatives(*(each[:0] if listed else each for each in drawn))
        return super()._select_link(links, fewer, available)


class NoHosts(LinkLearner):
    """Rates links without what their answers teach of their hosts."""

    def bonus(self, rows: Rows) -> Values:
        """Return zeros."""
        return np.zeros(len(rows), dtype=np.float32)


class WithoutHosts(TresPolicy):
    """Chooses without what hosts may still bring."""

    def _make_links(self, setup: PolicyInputs) -> LinkLearner:
        return NoHosts(self._store, setup.links, setup.seed, setup.link_prior)


class DoubtSiblings(LinkLearner):
    """Believes nothing of the fetched links of the same page before the crawl."""

    def __init__(
        self, store: SampleStore, options: LinkOptions, seed: int, prior: LinkPrior = NO_PRIOR
    ) -> None:
        super().__init__(store, options, seed, prior)
        siblings = KNOWN.index("siblings") - len(KNOWN)
        self.model.prior[siblings] = self.model.weights[siblings] = 0


class WithoutSiblings(TresPolicy):
    """Chooses as TRES did before siblings were believed."""

    def _make_links(self, setup: PolicyInputs) -> LinkLearner:
        return DoubtSiblings(self._store, setup.links, setup.seed, setup.link_prior)


class WithoutPlaces(TresPolicy):
    """Reads no words around links and no headings above them."""

    def _make_links(self, setup: PolicyInputs) -> LinkLearner:
        options = replace(setup.links, without=("around", "heading"))
        return LinkLearner(self._store, options, setup.seed, setup.link_prior)


PARTS: Final = {
    "network": WithoutNetwork,
    "tree": WithoutTree,
    "hosts": WithoutHosts,
    "siblings believed": WithoutSiblings,
    "places": WithoutPlaces,
}
ALL, LINKS = "(nothing)", "link model"
POLICIES.update(
    {f"without_{name}": Kind(policy, reads_cues=True) for name, policy in PARTS.items()}
)


def webs(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the name of each web and topic, and its settings."""
    for topic in ("food", "hardware", "sports"):
        yield f"generated {topic}", {"TRES_WEB": "synthetic", "TRES_TOPIC": topic}
    if options.data:
        for topic in ("food", "sports", "course", "hardware"):
            yield (
                f"sites {topic}",
                {
                    "TRES_WEB": "recorded",
                    "TRES_TOPIC": topic,
                    "TRES_WEB_DATA": options.data / "sites.warc.gz",
                    "TRES_WEB_LABELS": options.data / f"sites-{topic}.txt",
                    "TRES_SEED": "http://directory.test/",
                    "TRES_MODELS": options.models,
                },
            )


def crawl(world: World, settings: dict[str, object], without: str) -> int:
    """Crawl without a part; return the number of relevant pages."""
    policy = f"without_{without}" if without in PARTS else "tres"
    some = {"TRES_POLICY": policy, "TRES_LINK_MODEL": int(without != LINKS)}
    return world.crawl(Config.from_settings(settings | some)).relevant


def main() -> None:
    """Print a row for each web and topic."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--pages", type=int, default=500)
    options = parser.parse_args()
    columns = [ALL, *PARTS, LINKS]
    print(f"| without | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for name, web in webs(options):
        found: dict[str, list[int]] = {without: [] for without in columns}
        for seed in options.seeds:
            settings = web | {
                "TRES_RANDOM_SEED": seed,
                "TRES_WEB_SEED": seed,
                "TRES_PAGES": options.pages,
                "TRES_MAX_PER_DOMAIN": "none",
            }
            world = World(Config.from_settings(settings), user_agent="tres")
            for without in columns:
                found[without].append(crawl(world, settings, without))
        cells = [f"{np.mean(runs):.0f} ({min(runs)})" for runs in found.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
