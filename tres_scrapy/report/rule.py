"""The rule of a leaf in words: the splits on the way to it, as intervals of features (P 2.6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.tree import Rule

ANY: Final = "any link: the tree has not split"
MEANINGS: Final = {
    "parent_reward": "whether the page it was found on is relevant: 1 or 0",
    "path_closeness": "1 / links back to the closest relevant page on its path; 1: its own page",
    "path_relevance": "share of relevant pages on its path",
    "keyword_in_url": "whether its URL holds a keyword: 1 or 0",
    "keyword_in_anchor": "whether the text of its link holds a keyword: 1 or 0",
    "anchor_probability": "P(relevant) of the text of its link",
    "domain_relevance": "share of relevant pages of its domain; of a new one, of its inlinks",
    "domain_known": "1: its domain was visited before; 0.5: never",
}
_TWO_WORDS: Final = {  # of features that take two values: the words for the lower and the higher
    "parent_reward": ("found on a page that is not relevant", "found on a relevant page"),
    "keyword_in_url": ("without a keyword in the URL", "with a keyword in the URL"),
    "keyword_in_anchor": ("without a keyword in its text", "with a keyword in its text"),
    "domain_known": ("to a domain never visited", "to a domain visited before"),
}
_SHARES: Final = {  # of the others: what stands before and after the share
    "path_relevance": ("with", "relevant pages on its path"),
    "anchor_probability": ("with a text that is", "likely to be relevant"),
    "domain_relevance": ("to a domain that is", "relevant so far, or by its inlinks"),
}


_BRIEF: Final = {  # the same for where there is little room
    "parent_reward": ("from an irrelevant page", "from a relevant page"),
    "keyword_in_url": ("no keyword in URL", "keyword in URL"),
    "keyword_in_anchor": ("no keyword in text", "keyword in text"),
    "domain_known": ("new domain", "known domain"),
    "path_closeness": ("links since relevant", ""),
    "path_relevance": ("path", " relevant"),
    "anchor_probability": ("P(text)", ""),
    "domain_relevance": ("domain", " relevant"),
}


class Condition(NamedTuple):
    """low <= x[feature] < high, by the feature's number from 0."""

    feature: int
    low: float = -math.inf
    high: float = math.inf

    def narrowed(self, low: float, high: float) -> Condition:
        """Return the interval inside both."""
        return Condition(self.feature, max(self.low, low), min(self.high, high))

    def __str__(self) -> str:
        """Say it in words that follow "links"."""
        name, low = FEATURES[self.feature], self.low > -math.inf
        if name in _TWO_WORDS:
            return _TWO_WORDS[name][low]
        if name == "path_closeness":
            return _distance(self)
        before, after = _SHARES[name]
        return f"{before} {_interval(self.low, self.high)} {after}"

    def brief(self) -> str:
        """Say it in a few words that stand alone."""
        name, low = FEATURES[self.feature], self.low > -math.inf
        if name in _TWO_WORDS:
            return _BRIEF[name][low]
        before, after = _BRIEF[name]
        if name == "path_closeness":
            least, most = _steps(self)
            return f"{before} {f'≥ {least}' if most is None else f'≤ {most}'}"
        return f"{before} {f'≥ {_percent(self.low)}' if low else f'< {_percent(self.high)}'}{after}"


class RuleBook:
    """The rules of all leaves that a tree has had, by leaf and number of splits.

    A leaf that splits keeps its number as the left child; the right one of split i is leaf i + 1.
    """

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: list[Rule] = []
        self._splits: dict[int, list[int]] = {}  # by leaf, the numbers of its splits
        self.extend(rules)

    def extend(self, rules: Iterable[Rule]) -> None:
        """Add the splits that came after those known."""
        for rule in rules:
            self._splits.setdefault(rule.leaf, []).append(len(self.rules))
            self.rules.append(rule)

    def conditions(self, leaf: int, splits: int) -> list[Condition]:
        """Return the rule of a leaf after so many splits: a condition a feature, in their order."""
        found: dict[int, Condition] = {}
        for number, is_left in self._way(leaf, splits):
            feature, threshold, _ = self.rules[number].split
            condition = found.get(feature, Condition(feature))
            low, high = (-math.inf, threshold) if is_left else (threshold, math.inf)
            found[feature] = condition.narrowed(low, high)
        return sorted(found.values())

    def words(self, leaf: int, splits: int) -> str:
        """Return the rule of a leaf as a phrase."""
        return words_of(self.conditions(leaf, splits))

    def _way(self, leaf: int, splits: int) -> list[tuple[int, bool]]:
        """Return the splits from the root to a leaf and whether it goes left at each."""
        way: list[tuple[int, bool]] = []
        while True:
            lefts = [number for number in self._splits.get(leaf, ()) if number < splits]
            way += [(number, True) for number in reversed(lefts)]
            if leaf == 0:
                return way[::-1]
            splits = leaf - 1  # the split that made it
            way.append((splits, False))
            leaf = self.rules[splits].leaf


def words_of(conditions: Sequence[Condition]) -> str:
    """Return conditions as a phrase."""
    return "links " + ", ".join(map(str, conditions)) if conditions else ANY


def _distance(condition: Condition) -> str:
    """Say which 1 / distance: at 1 the page that links is relevant itself."""
    least, most = _steps(condition)
    if most is None:
        return f"that are {least} or more links after a relevant page"
    if most <= least:
        return f"that are {_links(least)} after a relevant page"
    return f"that are {least} to {_links(most)} after a relevant page"


def _steps(condition: Condition) -> tuple[int, int | None]:
    """Return the least and the most links since a relevant page that 1 / links allows."""
    least = math.floor(1 / condition.high + 1e-6) + 1 if condition.high < math.inf else 1
    return least, math.floor(1 / condition.low + 1e-6) if condition.low > 0 else None


def _links(count: int) -> str:
    return "1 link" if count == 1 else f"{count} links"


def _interval(low: float, high: float) -> str:
    if high == math.inf:
        return f"at least {_percent(low)}"
    if low == -math.inf:
        return f"less than {_percent(high)}"
    return f"{_percent(low)} to {_percent(high)}"


def _percent(share: float) -> str:
    """Return a share with as many digits as tell it from 0 and from 100 %."""
    percent = 100 * share
    distance = min(percent, 100 - percent)
    digits = 0 if distance >= 10 else 1 if distance >= 1 else 3
    return f"{percent:.{digits}f} %"
