"""The policies by name; the module of each names its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tres_scrapy.agent.policy import Policy
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.tres import NoNeighbourhoodPolicy, TresPolicy
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.parser import one_of
from tres_scrapy.config.typed import named
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.lab.rivals.ache import AchePolicy
from tres_scrapy.lab.rivals.han import AsyncPolicy
from tres_scrapy.lab.rivals.lookahead import LookaheadPolicy
from tres_scrapy.lab.rivals.order import BestFirstPolicy, BreadthFirstPolicy, OraclePolicy
from tres_scrapy.lab.rivals.sb_classifier import SbClassifierPolicy
from tres_scrapy.lab.rivals.seedfinder import SeedFinderPolicy
from tres_scrapy.lab.rivals.synchronous import AsynchronousPolicy, SynchronousPolicy
from tres_scrapy.lab.rivals.tree_random import TreeRandomPolicy
from tres_scrapy.lab.rivals.uniform import RandomPolicy


@dataclass(frozen=True)
class Kind:
    """A crawler: how to make its policy and what the policy needs.

    `classifier` is the kind of pack that judges its pages, "" for the topic's default pack. With
    `reads_text` the policy receives the text of pages, and the words around links and the tags that
    lead to them, with `reads_cues` what links say. If not `rewarded`, its choices do not depend on
    rewards and features. `needs` names another input: "similarity", "labels" or "graph" (see
    Setup), `extra` the optional packages that it uses.
    """

    make: Callable[[SampleStore, PolicyInputs], Policy]
    classifier: str = ""
    reads_text: bool = False
    reads_cues: bool = False
    rewarded: bool = True
    needs: str = ""
    extra: str = ""


POLICIES = {
    "tres": Kind(TresPolicy, reads_cues=True),
    "tree_random": Kind(TreeRandomPolicy),
    "random": Kind(RandomPolicy, rewarded=False),
    "synchronous": Kind(SynchronousPolicy),
    "tres_async": Kind(AsynchronousPolicy),
    "async": Kind(AsyncPolicy, needs="similarity"),
    "ache": Kind(AchePolicy, classifier="svm", reads_text=True, extra="train"),
    "seedfinder": Kind(SeedFinderPolicy, classifier="svm", reads_text=True),
    "sb_classifier": Kind(SbClassifierPolicy, reads_text=True),
    "best_first": Kind(BestFirstPolicy),
    "breadth_first": Kind(BreadthFirstPolicy, rewarded=False),
    "oracle": Kind(OraclePolicy, rewarded=False, needs="labels"),
    "lookahead": Kind(LookaheadPolicy, rewarded=False, needs="graph"),
    "tres_svm": Kind(TresPolicy, classifier="svm", reads_cues=True),
    "tres_nh": Kind(NoNeighbourhoodPolicy, reads_cues=True),
}


def kind_of(name: str) -> Kind:
    """Return a policy's kind; raise ConfigError if no policy has the name."""
    try:
        return POLICIES[one_of(*POLICIES)(name)]
    except ValueError as error:
        raise ConfigError(f"{named('TRES_POLICY')} {name!r}: {error}") from None


def make_policy(name: str, store: SampleStore, setup: PolicyInputs) -> Policy:
    """Return a new policy over `store`."""
    return POLICIES[name].make(store, setup)
