"""The policies by name, and where each comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.policies.ache import AchePolicy
from tres_scrapy.policies.first import BestFirstPolicy, BreadthFirstPolicy, OraclePolicy
from tres_scrapy.policies.han import AsyncPolicy
from tres_scrapy.policies.policy import Policy
from tres_scrapy.policies.seedfinder import SeedFinderPolicy
from tres_scrapy.policies.setup import Setup
from tres_scrapy.policies.synchronous import AsynchronousPolicy, SynchronousPolicy
from tres_scrapy.policies.tree_random import TreeRandomPolicy
from tres_scrapy.policies.tres import NoNeighbourhoodPolicy, TresPolicy
from tres_scrapy.policies.uniform import RandomPolicy


@dataclass(frozen=True)
class Kind:
    """A crawler: its policy and what the rest of the crawl has to do for it.

    `classifier` is the kind of pack that judges its pages, "" for the topic's own; with
    `reads_text` it is told the words of pages and around links; one that is not `rewarded` makes
    the same choices whatever the rewards and the features are; `needs` is what it must be told
    beyond those: "similarity" or "labels" (see Setup).
    """

    make: Callable[[SampleStore, Setup], Policy]
    source: str
    classifier: str = ""
    reads_text: bool = False
    rewarded: bool = True
    needs: str = ""


POLICIES = {
    "tres": Kind(TresPolicy, "TRES (P 2.4, 2.6)"),
    "tree_random": Kind(TreeRandomPolicy, "Tree-Random (P 3.4)"),
    "random": Kind(RandomPolicy, "Random (P 3.4)", rewarded=False),
    "synchronous": Kind(SynchronousPolicy, "Synchronous method (P 2.5)"),
    "tres_async": Kind(AsynchronousPolicy, "TRES_Async (P 3.6.1)"),
    "async": Kind(AsyncPolicy, "Async (Han et al., 2018)", needs="similarity"),
    "ache": Kind(AchePolicy, "ACHE (Barbosa and Freire, 2007)", classifier="svm", reads_text=True),
    "seedfinder": Kind(
        SeedFinderPolicy, "SeedFinder (Vieira et al., 2016)", classifier="svm", reads_text=True
    ),
    "best_first": Kind(BestFirstPolicy, "Best-First (Cho et al., 1998)"),
    "breadth_first": Kind(
        BreadthFirstPolicy, "Breadth-First (Najork and Wiener, 2001)", rewarded=False
    ),
    "oracle": Kind(
        OraclePolicy, "knows the labels of an offline web", rewarded=False, needs="labels"
    ),
    "tres_svm": Kind(TresPolicy, "TRES_SVM (P 3.6.2)", classifier="svm"),
    "tres_nh": Kind(NoNeighbourhoodPolicy, "TRES_NH (P 3.6.3)"),
}


def make_policy(name: str, store: SampleStore, setup: Setup) -> Policy:
    """Return a new policy over `store`."""
    return POLICIES[name].make(store, setup)
