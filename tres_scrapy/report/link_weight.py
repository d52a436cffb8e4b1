"""The strongest weights of the link model, with their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.links.code import BITS, CODES, SIZE, CueGroup, Names
from tres_scrapy.report.link_part import FEATURE, LEAST, fact_name, known_name

MOST: Final = 8  # weights of a group for a link, and as many against it
FETCHED: Final = 3  # fewer fetched links say too little about a word
_SEARCHED: Final = 100  # strongest weights of a group, of which those with other texts are kept


class LinkWeight(NamedTuple):
    """A word, run or fact, its weight, and how many links with it were fetched and relevant.

    A feature, which every link has, has no counts.
    """

    text: str
    weight: float
    fetched: int = 0
    relevant: int = 0


def strongest(learner: LinkLearner, names: Names) -> dict[str, list[LinkWeight]]:
    """Return the strongest weights by group, from most for to most against a link.

    Before the first fetch the result is empty.
    """
    if not learner.fetched.any():
        return {}
    known = enumerate(learner.model.weights[CODES:].tolist())
    features = [LinkWeight(known_name(column), round(weight, 3)) for column, weight in known]
    read = [group for group in CueGroup if group.name.lower() not in learner.options.without]
    found = {group.name.lower(): _of_group(learner, names, group) for group in read}
    found[FEATURE] = [each for each in features if abs(each.weight) >= LEAST]
    found[FEATURE].sort(key=lambda each: -each.weight)
    return {group: weights for group, weights in found.items() if weights}


def _of_group(learner: LinkLearner, names: Names, group: CueGroup) -> list[LinkWeight]:
    first = group << BITS
    codes = np.flatnonzero(learner.fetched[first : first + SIZE] >= FETCHED) + first
    codes = codes[np.argsort(-learner.model.weights[codes], kind="stable")]
    good = _different(group, _named(learner, names, codes[:_SEARCHED], 1))
    bad = _different(group, _named(learner, names, codes[-_SEARCHED:], -1))
    return [*good, *bad[::-1]]


def _named(
    learner: LinkLearner, names: Names, codes: NDArray[np.int64], sign: int
) -> Iterator[LinkWeight]:
    """Yield the weights of a sign, strongest first, longer texts first among equals."""
    found = []
    for code in codes.tolist():
        fact = code >> BITS == CueGroup.FACT
        text = fact_name(code & (SIZE - 1)) if fact else names.text(code)
        weight = round(float(learner.model.weights[code]), 3)
        if text and sign * weight >= LEAST:
            counts = int(learner.fetched[code]), int(learner.rewarded[code])
            found.append(LinkWeight(text, weight, *counts))
    yield from sorted(found, key=lambda each: (-sign * each.weight, -len(each.text)))


def _different(group: CueGroup, found: Iterator[LinkWeight]) -> list[LinkWeight]:
    """Return the first weights, without runs and paths that share much with a stronger one."""
    kept: list[LinkWeight] = []
    for each in found:
        if len(kept) == MOST:
            break
        if not any(_alike(group, each.text, other.text) for other in kept):
            kept.append(each)
    return kept


def _alike(group: CueGroup, text: str, other: str) -> bool:
    if group is CueGroup.URL:
        return any(text[i : i + 3] in other for i in range(len(text) - 2))
    return group is CueGroup.PATH and (
        text in other or not _styled(text).isdisjoint(_styled(other))
    )


def _styled(path: str) -> set[str]:
    """Return the steps of a path that have an id or a class."""
    return {step for step in path.split() if "." in step}
