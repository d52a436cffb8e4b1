"""The crawlers that TRES is compared with (P 3.4), each with its source, and an oracle.

`python benchmarks/compare.py --policies tres rivals:ACHE` compares one. The simple ones have short
names in the scripts of this folder. A crawl takes any: `PYTHONPATH=benchmarks scrapy crawl tres -a
policy=rivals:RANDOM`.
"""

from __future__ import annotations

from typing import Final

from rivals.ache import AchePolicy
from rivals.baseline import (
    BestFirstPolicy,
    BreadthFirstPolicy,
    OraclePolicy,
    RandomPolicy,
    TreeRandomPolicy,
)
from rivals.inputs import with_graph, with_keywords, with_labels
from rivals.lookahead import LookaheadPolicy
from rivals.opic import OpicPolicy
from rivals.shark_search import SharkSearchPolicy
from tres_scrapy.agent.policy_inputs import Kind
from tres_scrapy.crawl.registry import POLICIES

TREE_RANDOM = Kind(TreeRandomPolicy)
RANDOM = Kind(RandomPolicy, rewarded=False)
BEST_FIRST = Kind(BestFirstPolicy)
BREADTH_FIRST = Kind(BreadthFirstPolicy, rewarded=False)
ORACLE = Kind(OraclePolicy, rewarded=False, prepare=with_labels)
POLICIES.update(
    tree_random=TREE_RANDOM,
    random=RANDOM,
    best_first=BEST_FIRST,
    breadth_first=BREADTH_FIRST,
    oracle=ORACLE,
)
ACHE = Kind(AchePolicy, classifier="svm", extra="train")
SHARK_SEARCH = Kind(SharkSearchPolicy, rewarded=False, prepare=with_keywords)
OPIC = Kind(OpicPolicy, rewarded=False)
LOOKAHEAD = Kind(LookaheadPolicy, rewarded=False, prepare=with_graph)  # a ceiling, no crawler
NAMES: Final = ("ACHE", "SHARK_SEARCH", "OPIC", "LOOKAHEAD")
RIVALS: Final = tuple(f"rivals:{name}" for name in NAMES)
