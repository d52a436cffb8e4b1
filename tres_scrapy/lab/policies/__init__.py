"""The crawlers that TRES is compared with (P 3.4, Table 3), each with its source."""

from __future__ import annotations

from typing import Final

from tres_scrapy.agent.policy_inputs import Kind
from tres_scrapy.lab.policies.ache import AchePolicy
from tres_scrapy.lab.policies.baseline import (
    BestFirstPolicy,
    BreadthFirstPolicy,
    OraclePolicy,
    RandomPolicy,
    TreeRandomPolicy,
)
from tres_scrapy.lab.policies.inputs import (
    with_graph,
    with_keywords,
    with_labels,
    with_search,
)
from tres_scrapy.lab.policies.lookahead import LookaheadPolicy
from tres_scrapy.lab.policies.opic import OpicPolicy
from tres_scrapy.lab.policies.seedfinder import SeedFinderPolicy
from tres_scrapy.lab.policies.shark_search import SharkSearchPolicy

POLICIES: Final = {
    "tree_random": Kind(TreeRandomPolicy),
    "random": Kind(RandomPolicy, rewarded=False),
    "ache": Kind(AchePolicy, classifier="svm", extra="train"),
    "seedfinder": Kind(SeedFinderPolicy, classifier="svm", prepare=with_search),
    "shark_search": Kind(SharkSearchPolicy, rewarded=False, prepare=with_keywords),
    "opic": Kind(OpicPolicy, rewarded=False),
    "best_first": Kind(BestFirstPolicy),
    "breadth_first": Kind(BreadthFirstPolicy, rewarded=False),
    "oracle": Kind(OraclePolicy, rewarded=False, prepare=with_labels),
    "lookahead": Kind(LookaheadPolicy, rewarded=False, prepare=with_graph),
}
