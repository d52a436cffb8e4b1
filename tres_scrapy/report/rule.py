"""The rule of a leaf in words: the splits above it, as intervals of features (P 2.6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tres_scrapy.frontier.feature import TABLE, Unit
from tres_scrapy.frontier.tree import Rule
from tres_scrapy.url.message import plural

ANY: Final = "any link (the tree has not split)"


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
        return words_of(self.conditions(leaf, splits))

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


def words_of(conditions: Sequence[Condition]) -> str:
    """Return conditions as a phrase."""
    return "links " + ", ".join(map(str, conditions)) if conditions else ANY


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
