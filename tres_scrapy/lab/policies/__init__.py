"""The simple crawlers that TRES is compared with (P 3.4), and those that know the labels."""

from __future__ import annotations

from typing import Final

from tres_scrapy.agent.policy_inputs import Kind
from tres_scrapy.lab.policies.baseline import (
    BestFirstPolicy,
    BreadthFirstPolicy,
    OraclePolicy,
    RandomPolicy,
    TreeRandomPolicy,
)
from tres_scrapy.lab.policies.inputs import with_graph, with_labels
from tres_scrapy.lab.policies.lookahead import LookaheadPolicy

POLICIES: Final = {
    "tree_random": Kind(TreeRandomPolicy),
    "random": Kind(RandomPolicy, rewarded=False),
    "best_first": Kind(BestFirstPolicy),
    "breadth_first": Kind(BreadthFirstPolicy, rewarded=False),
    "oracle": Kind(OraclePolicy, rewarded=False, prepare=with_labels),
    "lookahead": Kind(LookaheadPolicy, rewarded=False, prepare=with_graph),
}
