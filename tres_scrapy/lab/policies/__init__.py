"""The simple crawlers that TRES is compared with (P 3.4), and an oracle that knows the labels."""

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
from tres_scrapy.lab.policies.inputs import with_labels

POLICIES: Final = {
    "tree_random": Kind(TreeRandomPolicy),
    "random": Kind(RandomPolicy, rewarded=False),
    "best_first": Kind(BestFirstPolicy),
    "breadth_first": Kind(BreadthFirstPolicy, rewarded=False),
    "oracle": Kind(OraclePolicy, rewarded=False, prepare=with_labels),
}
