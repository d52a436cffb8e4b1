"""Why a sample was chosen (Algorithms 2 and 3): its Q, its link, the rule of its leaf (P 2.6)."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import Choice, Decision
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.feature import TABLE, Unit
from tres_scrapy.frontier.tree import Rule
from tres_scrapy.links.code import (
    BITS,
    CODES,
    GROUP_SIZE,
    MAX_NAME_LENGTH,
    PARTS,
    RUNS,
    CueGroup,
    Fact,
    Names,
    coded,
    read_url,
    url_places,
)
from tres_scrapy.links.model import KNOWN, LinkEvidence
from tres_scrapy.page.place import tokenise
from tres_scrapy.url.message import counted

SEED, GREEDY, UNCERTAIN, EXPLORED, OTHER = "seed", "greedy", "uncertain", "explored", "other"
RIVALS: Final = 10
ANY_LINK: Final = "any link (the tree has not split)"
_SEARCHED: Final = 512  # number of highest Q searched for the best samples of other leaves
PARTS_FOR: Final = 4  # parts kept of those that speak for a link
PARTS_AGAINST: Final = 3
PARTS_IN_A_SENTENCE: Final = (3, 2)  # parts for and against in a sentence
FAINTEST: Final = 0.05  # a part that adds less to the logit is left out
FEATURE: Final = "feature"  # the group of known facts
UNKNOWN: Final = "not known"
GROUPS: Final = {group.name.lower(): group for group in CueGroup}
_URL_WORD: Final = re.compile(rb"[^a-z0-9~%]*([a-z0-9~%]+)(?:[^a-z0-9~%]+$)?")
_KNOWN_NAMES: Final = {
    "one": "any link",
    "siblings": "results of links beside it",
    "host_logit": "last results of its host",
    "anchor_logit": 6,
}


def kind_of(decision: Decision, *, is_seed: bool) -> str:
    """Return how a sample was chosen."""
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
        rules = self._crawl.policy.rules
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
    drawn = f"{counted(samples, 'link')} from {counted(leaves, 'leaf')}"
    reasons = {
        SEED: "Seed",
        GREEDY: f"Highest Q: {q}, best of {drawn}" if samples else f"Highest value: {q}",
        UNCERTAIN: f"Highest sum of Q and bonus: Q {q}, best of {drawn}",
        EXPLORED: "Exploration: a random link of a random leaf",
        OTHER: "Chosen by the order of the policy, or at random",
    }
    parts = [reasons[kind], f"Link: {link}" if link else "", f"Leaf: {rule}" if rule else ""]
    return " ".join(f"{part}." for part in parts if part)


class Condition(NamedTuple):
    """The condition low <= x[feature] < high; features are numbered from 0."""

    feature: int
    low: float = -math.inf
    high: float = math.inf

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
            _, low, high = found.get(feature, Condition(feature))
            low, high = (low, min(high, threshold)) if is_left else (max(low, threshold), high)
            found[feature] = Condition(feature, low, high)
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
        return f"not {'1 to ' if least > 2 else ''}{counted(least - 1, 'link')}"
    return counted(least, "link") if most <= least else f"{least} to {counted(most, 'link')}"


def _steps(condition: Condition) -> tuple[int, int | None]:
    """Return the range of links since a relevant page that a condition on 1 / links allows."""
    least = math.floor(1 / condition.high + 1e-6) + 1 if condition.high < math.inf else 1
    return least, math.floor(1 / condition.low + 1e-6) if condition.low > 0 else None


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


class LinkPart(NamedTuple):
    """A word, path or fact of a link with its group, and what it adds to the logit."""

    group: str
    text: str
    adds: float

    @property
    def label(self) -> str:
        """The part as people read it: anchor "soup", in menu."""
        return label_of(self.group, self.text)


def label_of(group: str, text: str) -> str:
    """Return a text with its group: anchor "soup", in menu."""
    kind = GROUPS.get(group)
    if kind is None or kind is CueGroup.FACT:
        return text
    if text == UNKNOWN:
        return f"{group} ({text})"
    if kind is CueGroup.PAGE:
        return f'page URL "{text[1:]}"' if text.startswith("/") else f'page title "{text}"'
    return f'{"URL" if kind is CueGroup.URL else group} "{text}"'


def phrase_of(parts: Sequence[LinkPart]) -> str:
    """Return the strongest parts for and against a link as one phrase, "" without any."""
    good = [f"{part.label} {part.adds:+.1f}" for part in parts if part.adds > 0]
    bad = [f"{part.label} {part.adds:+.1f}" for part in parts if part.adds < 0]
    most, most_against = PARTS_IN_A_SENTENCE
    against = [f"against: {', '.join(bad[:most_against])}"] if bad else []
    return ", ".join([*good[:most], *against])


@lru_cache(maxsize=64)  # an item and the file of the run explain the same choice
def parts_of(said: LinkEvidence, names: Names) -> list[LinkPart]:
    """Return the strongest parts for a link, then those against it, each strongest first."""
    words, first = _url_parts(said), _run_count(said.url)
    adds = np.concatenate([list(words.values()), said.adds[first:]])
    order = np.argsort(adds, kind="stable")
    good = [i for i in order[: -PARTS_FOR - 1 : -1].tolist() if adds[i] >= FAINTEST]
    bad = [i for i in order[:PARTS_AGAINST].tolist() if adds[i] <= -FAINTEST]
    parts: list[str | int] = [*words, *said.where[first:].tolist()]
    return [LinkPart(*_named(said, names, parts[i]), round(float(adds[i]), 3)) for i in good + bad]


def fact_name(number: int) -> str:
    """Return the name of a fact, given its number in the group FACT."""
    kind = max((kind for kind in Fact if kind <= number), default=Fact.KEYWORD_AROUND)
    if kind is Fact.PAGE_PROBABILITY:
        low, high = (100 * (number - kind + edge) / PARTS for edge in (0, 1))
        return f"page with P(relevant) {low:.0f} to {high:.0f} %"
    return kind.name.lower().replace("_", " ")


def known_name(column: int) -> str:
    """Return the name of a known fact, given its column."""
    name = KNOWN[column]
    told = _KNOWN_NAMES[name] if isinstance(name, str) else name
    if isinstance(told, str):
        return told
    return next(feature.label for feature in TABLE if feature.number == told)


def _url_parts(said: LinkEvidence) -> dict[str, float]:
    """Return the words of a URL; each character has its share of the runs that hold it."""
    text = read_url(said.url)
    shares, first = np.zeros(len(text)), 0
    for length in RUNS:
        last = first + max(0, len(text) - length + 1)
        if first < last:
            shares += np.convolve(said.adds[first:last], np.full(length, 1 / length))
        first = last
    until = [0.0, *np.cumsum(shares).tolist()]
    found: defaultdict[str, float] = defaultdict(float)
    for word in _URL_WORD.finditer(text):
        found[word[1].decode("latin-1")] += until[word.end()] - until[word.start()]
    return found


def _named(said: LinkEvidence, names: Names, part: str | int) -> tuple[str, str]:
    """Return the group and the text of a word of the URL or of the number of a weight."""
    if isinstance(part, str):
        return CueGroup.URL.name.lower(), part[:MAX_NAME_LENGTH]
    if part >= CODES:
        return FEATURE, known_name(part - CODES)
    group = CueGroup(part >> BITS)
    text = names.text(part)
    if group is CueGroup.FACT:
        text = fact_name(part & (GROUP_SIZE - 1))
    elif group is CueGroup.HOST:
        text = next(each for each in url_places(said.url) if coded(group, [each])[0] == part)
    elif group is CueGroup.ANCHOR:  # exact, even if another word has the same code
        own = tokenise(said.anchor)
        text = next((word for word in own if coded(group, [word])[0] == part), text)
    return group.name.lower(), (text or UNKNOWN)[:MAX_NAME_LENGTH]


def _run_count(url: str) -> int:
    length = len(read_url(url))
    return sum(max(0, length - run + 1) for run in RUNS)
