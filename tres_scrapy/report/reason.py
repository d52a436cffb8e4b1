"""Why a sample was chosen (Algorithms 2 and 3), and which samples it was preferred to."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import Choice, Decision
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.report.link_part import parts_of, words_of
from tres_scrapy.report.rule import RuleBook
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
_SEARCHED: Final = 512  # number of highest Q searched for the best samples of other leaves


class RivalSample(NamedTuple):
    """The best sample of a leaf that was not chosen."""

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
    return GREEDY if decision.q_value >= decision.choice.q_values.max() else UNCERTAIN


def rivals_of(decision: Decision) -> list[RivalSample]:
    """Return the best sample of each leaf, highest Q first, without the chosen sample."""
    choice = decision.choice
    if choice is None or choice.q_values is None:
        return []
    places = _highest(choice)
    places = places[choice.rows[places] != decision.row]
    _, firsts = np.unique(choice.leaves[places], return_index=True)
    best = places[np.sort(firsts)[:RIVALS]]
    columns = choice.leaves[best], choice.q_values[best], choice.rows[best]
    return [RivalSample(*each) for each in zip(*map(np.ndarray.tolist, columns), strict=True)]


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
        link = words_of(parts_of(choice.said, names)) if choice.said is not None else ""
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
