"""The crawlers that TRES is compared with (P 3.4), each with its source.

`python benchmarks/compare.py --policies tres rivals:ACHE` compares one.
"""

from __future__ import annotations

from typing import Final

from rivals.ache import AchePolicy
from rivals.inputs import with_graph, with_keywords
from rivals.lookahead import LookaheadPolicy
from rivals.opic import OpicPolicy
from rivals.shark_search import SharkSearchPolicy
from tres_scrapy.agent.policy_inputs import Kind

ACHE = Kind(AchePolicy, classifier="svm", extra="train")
SHARK_SEARCH = Kind(SharkSearchPolicy, rewarded=False, prepare=with_keywords)
OPIC = Kind(OpicPolicy, rewarded=False)
LOOKAHEAD = Kind(LookaheadPolicy, rewarded=False, prepare=with_graph)  # a ceiling, no crawler
NAMES: Final = ("ACHE", "SHARK_SEARCH", "OPIC", "LOOKAHEAD")
RIVALS: Final = tuple(f"rivals:{name}" for name in NAMES)
