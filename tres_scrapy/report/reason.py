"""Why a sample was chosen (Algorithms 2 and 3): its Q, its link, the rule of its leaf (P 2.6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import Choice, Decision
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.feature import TABLE, Unit
from tres_scrapy.frontier.tree import Rule
from tres_scrapy.report.link_part import parts_of, phrase_of
from tres_scrapy.url.message import plural

SEED, QUERY, GREEDY, UNCERTAIN, EXPLORED, OTHER, LOST = (
    "seed",
    "query",
    "greedy",
    "uncertain",
    "explored",
    "other",
    "lost",
)
RIVALS: Final = 10
ANY_LINK: Final = "any link (the tree has not split)"
_SEARCHED: Final = 512  # number of highest Q searched for the best samples of other leaves


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
    return GREEDY if decision.q_value >= decision.choice.q_values.max() else UNCERTAIN


def rivals_of(decision: Decision) -> list[tuple[int, float, int]]:
    """Return leaf, Q and row of each leaf's best sample, highest Q first, but the chosen one."""
    choice = decision.choice
    if choice is None or choice.q_values is None:
        return []
    places = _highest(choice)
    places = places[choice.rows[places] != decision.row]
    _, firsts = np.unique(choice.leaves[places], return_index=True)
    best = places[np.sort(firsts)[:RIVALS]]
    columns = choice.leaves[best], choice.q_values[best], choice.rows[best]
    return list(zip(*map(np.ndarray.tolist, columns), strict=True))


def size_of(choice: Choice) -> tuple[int, int]:
    """Return the number of samples drawn for a choice, and the number of their leaves."""
    return len(choice.rows), int(np.count_nonzero(np.bincount(choice.leaves)))


def _highest(choice: Choice) -> NDArray[np.int64]:
    """Return the indices of the highest Q, in descending order of Q."""
    assert choice.q_values is not None
    values = choice.q_values
    places = np.arange(len(values))
    if len(values) > _SEARCHED:
        places = np.argpartition(values, len(values) - _SEARCHED)[-_SEARCHED:]
    ordered: NDArray[np.int64] = places[np.argsort(-values[places], kind="stable")]
    return ordered


class Reasons:
    """Explains the decisions of a crawl by the rules of its tree."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._book = RuleBook()

    def why(self, decision: Decision) -> str:
        """Return why a decision was made, in sentences."""
        kind = kind_of(decision, is_seed=self._crawl.store.is_seed(decision.row))
        choice = decision.choice
        if choice is None or decision.leaf is None:
            return sentence(kind, decision.q_value)
        rules = getattr(self._crawl.policy, "rules", ())
        self._book.extend(rules[len(self._book.rules) :])
        rule = self._book.words(decision.leaf, choice.splits)
        names = self._crawl.store.names
        link = phrase_of(parts_of(choice.said, names)) if choice.said is not None else ""
        return sentence(kind, decision.q_value, rule, *size_of(choice), link=link)


def sentence(
    kind: str,
    q_value: float | None,
    rule: str = "",
    samples: int = 0,
    leaves: int = 0,
    *,
    link: str = "",
) -> str:
    """Return why a sample was chosen: its Q, the number of candidates, its link, its leaf.

    `link` holds the strongest parts of the link, `rule` the rule of its leaf.
    """
    q = "" if q_value is None else f"{q_value:.2f}"
    drawn = f"{samples:,} {plural(samples, 'link')} from {leaves:,} {plural(leaves, 'leaf')}"
    reasons = {
        SEED: "Seed",
        QUERY: "Query to the search engine",
        GREEDY: f"Highest Q: {q}, best of {drawn}" if samples else f"Highest value: {q}",
        UNCERTAIN: f"Highest sum of Q and bonus: Q {q}, best of {drawn}",
        EXPLORED: "Exploration: a random link of a random leaf",
        LOST: "Fetched just before the crawl was killed: the reason is not recorded",
        OTHER: "Chosen by the order of the policy, or at random",
    }
    parts = [reasons[kind], f"Link: {link}" if link else "", f"Leaf: {rule}" if rule else ""]
    return " ".join(f"{part}." for part in parts if part)


class Condition(NamedTuple):
    """The condition low <= x[feature] < high; features are numbered from 0."""

    feature: int
    low: float = -math.inf
    high: float = math.inf

    def narrowed(self, low: float, high: float) -> Condition:
        """Return the intersection with another interval."""
        return Condition(self.feature, max(self.low, low), min(self.high, high))

    def __str__(self) -> str:
        """Return the words that follow "links"."""
        spec, is_upper = TABLE[self.feature], self.low > -math.inf
        if spec.unit is Unit.BINARY:
            return spec.rule[is_upper]
        interval = _distance(self) if spec.unit is Unit.CLOSENESS else _interval(self)
        return spec.rule[0].format(interval)

    def brief(self) -> str:
        """Return a few words, without context, for a condition with one bound."""
        spec, is_upper = TABLE[self.feature], self.low > -math.inf
        if spec.unit is Unit.BINARY:
            return spec.brief[is_upper]
        if spec.unit is Unit.CLOSENESS:
            least, most = _steps(self)
            return spec.brief[0].format(f"≥ {least}" if most is None else f"≤ {most}")
        sign, end = ("≥", self.low) if is_upper else ("<", self.high)
        return spec.brief[0].format(f"{sign} {_percent(end)}")


class RuleBook:
    """The rules of all past and present leaves of a tree, by leaf and number of splits.

    A leaf that splits keeps its number as the left child; the right child of split i is leaf i + 1.
    """

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: list[Rule] = []
        self._splits: dict[int, list[int]] = {}  # by leaf, the numbers of its splits
        self.extend(rules)

    def extend(self, rules: Iterable[Rule]) -> None:
        """Append new splits."""
        for rule in rules:
            self._splits.setdefault(rule.leaf, []).append(len(self.rules))
            self.rules.append(rule)

    def conditions(self, leaf: int, splits: int) -> list[Condition]:
        """Return the rule of a leaf after `splits` splits: one condition per feature, in order."""
        found: dict[int, Condition] = {}
        for number, is_left in self._way(leaf, splits):
            feature, threshold, _ = self.rules[number].split
            condition = found.get(feature, Condition(feature))
            low, high = (-math.inf, threshold) if is_left else (threshold, math.inf)
            found[feature] = condition.narrowed(low, high)
        return sorted(found.values())

    def words(self, leaf: int, splits: int) -> str:
        """Return the rule of a leaf as a phrase."""
        return rule_phrase(self.conditions(leaf, splits))

    def _way(self, leaf: int, splits: int) -> list[tuple[int, bool]]:
        """Return the splits from the root to a leaf, and whether the leaf is left of each."""
        way: list[tuple[int, bool]] = []
        while True:
            lefts = [number for number in self._splits.get(leaf, ()) if number < splits]
            way += [(number, True) for number in reversed(lefts)]
            if leaf == 0:
                return way[::-1]
            splits = leaf - 1  # the split that created the leaf
            way.append((splits, False))
            leaf = self.rules[splits].leaf


def rule_phrase(conditions: Sequence[Condition]) -> str:
    """Return conditions as a phrase."""
    return "links " + ", ".join(map(str, conditions)) if conditions else ANY_LINK


def _distance(condition: Condition) -> str:
    """Return the allowed distances in words: 1 link if the page with the link is relevant.

    Without an upper limit, a path without a relevant page is allowed too.
    """
    least, most = _steps(condition)
    if most is None:
        return f"not {'1 to ' if least > 2 else ''}{_links(least - 1)}"
    return _links(least) if most <= least else f"{least} to {_links(most)}"


def _steps(condition: Condition) -> tuple[int, int | None]:
    """Return the range of links since a relevant page that a condition on 1 / links allows."""
    least = math.floor(1 / condition.high + 1e-6) + 1 if condition.high < math.inf else 1
    return least, math.floor(1 / condition.low + 1e-6) if condition.low > 0 else None


def _links(count: int) -> str:
    return f"{count} {plural(count, 'link')}"


def _interval(condition: Condition) -> str:
    _, low, high = condition
    if high == math.inf:
        return f"at least {_percent(low)}"
    if low == -math.inf:
        return f"less than {_percent(high)}"
    least, most = _percent(low), _percent(high)
    return least if least == most else f"{least} to {most}"


def _percent(share: float) -> str:
    """Return a share in percent, with enough digits to differ from 0 and from 100 %."""
    percent = 100 * share
    distance = min(percent, 100 - percent)
    digits = 0 if distance >= 10 else 1 if distance >= 1 else 3
    return f"{percent:.{digits}f} %"
