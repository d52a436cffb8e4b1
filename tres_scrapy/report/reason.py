"""Why a sample was chosen (Algorithms 2 and 3), in a sentence and with its rivals."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.policy import Choice, Decision
from tres_scrapy.report.rule import RuleBook

SEED, QUERY, GREEDY, UNCERTAIN, NEW_DOMAIN, EXPLORED, OTHER, LOST = (
    *("seed", "query", "greedy", "uncertain", "new_domain", "explored", "other", "lost"),
)
RIVALS: Final = 10
_SEARCHED: Final = 64  # of the highest Q, among which the best of other leaves are looked for


class Rival(NamedTuple):
    """The best sample of a leaf at a choice, but for the one that was chosen."""

    leaf: int
    q_value: float
    row: int


def kind_of(decision: Decision, *, is_seed: bool) -> str:
    """Return how a sample was chosen."""
    if decision.is_query:
        return QUERY
    if is_seed:
        return SEED
    if decision.choice is None:
        return OTHER if decision.q_value is None else GREEDY
    if decision.q_value is None or decision.choice.q_values is None:
        return EXPLORED
    if decision.q_value >= decision.choice.q_values.max():
        return GREEDY
    return UNCERTAIN if _has_highest_bound(decision.choice, decision.row) else NEW_DOMAIN


def rivals_of(decision: Decision) -> list[Rival]:
    """Return the best sample not chosen of each of the best leaves, the highest Q first."""
    choice = decision.choice
    if choice is None or choice.q_values is None:
        return []
    best: dict[int, Rival] = {}
    for place in _highest(choice):
        leaf, row = int(choice.leaves[place]), int(choice.rows[place])
        if row != decision.row and leaf not in best:
            best[leaf] = Rival(leaf, float(choice.q_values[place]), row)
    return list(best.values())[:RIVALS]


def size_of(choice: Choice) -> tuple[int, int]:
    """Return the number of samples and of leaves that a sample was chosen among."""
    return len(choice.rows), int(np.count_nonzero(np.bincount(choice.leaves)))


def _has_highest_bound(choice: Choice, row: int) -> bool:
    bounds = choice.bounds
    return bounds is not None and bool(bounds[choice.rows == row].max() >= bounds.max())


def _highest(choice: Choice) -> list[int]:
    """Return the places of the highest Q in their order."""
    assert choice.q_values is not None
    values = choice.q_values
    places = np.arange(len(values))
    if len(values) > _SEARCHED:
        places = np.argpartition(values, len(values) - _SEARCHED)[-_SEARCHED:]
    ordered: list[int] = places[np.argsort(-values[places], kind="stable")].tolist()
    return ordered


class Reasons:
    """Says of the samples of a crawl why they were chosen."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._book = RuleBook()

    def why(self, decision: Decision) -> str:
        """Return the reason of a decision as a sentence."""
        kind = kind_of(decision, is_seed=self._crawl.store.is_seed(decision.row))
        choice = decision.choice
        if choice is None or decision.leaf is None:
            return sentence(kind, decision.q_value)
        rules = getattr(self._crawl.policy, "rules", ())
        self._book.extend(rules[len(self._book.rules) :])
        rule = self._book.words(decision.leaf, choice.splits)
        return sentence(kind, decision.q_value, rule, *size_of(choice))


def sentence(
    kind: str, q_value: float | None, rule: str = "", samples: int = 0, leaves: int = 0
) -> str:
    """Return the reason of a choice, by the rule of its leaf and what it was chosen among."""
    q = "" if q_value is None else f"{q_value:.3f}"
    best = f"Its Q, {q}, was the highest of {samples:,} links drawn from {leaves:,} leaves"
    reasons = {
        SEED: "It is a seed",
        QUERY: "It asks the search engine",
        GREEDY: best if samples else f"It was the best to the policy, of value {q}",
        UNCERTAIN: f"Its Q, {q}, and the width of its confidence were together the highest of "
        f"{samples:,} links drawn from {leaves:,} leaves, for little like it was fetched",
        NEW_DOMAIN: f"Its Q, {q}, is that of the best of the links to domains never visited, for "
        "which some choices are kept",
        EXPLORED: "Drawn at random, first a leaf, then a link of it",
        LOST: "Fetched just before the crawl was broken off: why is not recorded",
        OTHER: "The next by the order of the policy, or drawn by it",
    }
    return f"{reasons[kind]}. Its leaf: {rule}." if rule else f"{reasons[kind]}."
