"""One score of pages, from what is known of them before and from what was learned of them.

What is known before is what the keywords say, or a trained pack. How much a pack counts, and
whether it is blind, is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tres_scrapy.topic.classifier import sigmoid
from tres_scrapy.topic.threshold import (
    Threshold,
    deviation_of,
    evidence,
    expected_place,
    find_threshold,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.learning import Lesson

    Numbers = NDArray[np.float64]

TRUST: Final = 0.25  # weight of the keywords beside what was learned from many pages
FIRST_PAGES: Final = 120  # it is twice that after so many
TOLD_PAGES: Final = 50  # the same, once there are answers
# Pages that fit the keywords best count as relevant until better ones are found.
BEST_PAGES: Final = 5
BEST_SHARE: Final = 0.3  # of all pages that these are at most
BLIND_WEIGHT: Final = 0.5  # deviations of what a blind pack says, beside one of its keywords
STANDS_OUT: Final = -3.3  # log odds of a page that has something of the keywords
# A trained pack is blind if it calls fewer than this share of the pages relevant that its keywords
# let expect, which are at least so many.
BLIND_SHARE: Final = 0.5
LEAST_EXPECTED: Final = 10
# Deviations of what a pack says that answers correct, beside one of what they taught.
SHARES: Final = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 16.0])


class Start(NamedTuple):
    """What says how likely pages are before answers teach: log odds [n] and a score [n].

    `weights` are those of the words in that score. `called` is how many pages a trained pack calls
    relevant whose log odds both are; None by the keywords. `blind` [n] are the log odds by a pack
    that is blind, so that its keywords say it, and `reason` why, if it was found so now.
    """

    log_odds: Numbers
    score: Numbers
    weights: Numbers
    called: int | None = None
    blind: Numbers | None = None
    reason: str = ""

    @classmethod
    def of_pack(cls, trained: Numbers, edge: float, width: int) -> Self:
        """Return the start by a trained pack; it gives no weight to any of the `width` words."""
        return cls(trained, trained, np.zeros(width), int((trained >= edge).sum()))


class Joint(NamedTuple):
    """A score of pages: what was learned, `trust` times the start, a blind pack, the threshold."""

    trust: float
    prior_weight: float
    threshold: Threshold


def blindness_of(called: NDArray[np.bool_], likely: Numbers) -> str:
    """Return why a pack that calls these pages relevant [n] is blind, "" if it is not.

    `likely` [n] is P(relevant) of the pages by its keywords, or by answers.
    """
    expected, count = float(likely.sum()), int(called.sum())
    if expected >= LEAST_EXPECTED and count < BLIND_SHARE * expected:
        return f"of {len(likely)} it calls {count} relevant, its keywords let expect {expected:.0f}"
    return ""


def share_of_pack(
    held_out: Numbers,
    known: Numbers,
    called: int,
    rows: Sequence[int],
    labels: NDArray[np.bool_],
) -> float:
    """Return how much the log odds by a trained pack count beside what was learned.

    `held_out` and `known` [n], of one deviation, are both; the pack calls so many pages relevant;
    `rows` [k] were answered. It is the mean of SHARES, each by how well it explains the answers.
    """
    both = [held_out + share * known for share in SHARES]
    odds = np.array(
        [evidence(each, expected_place(each, called), each[rows], labels) for each in both]
    )
    weight = np.exp(odds - odds.max())
    return float(np.exp(weight @ np.log(SHARES) / weight.sum()))


def joined(lesson: Lesson, start: Start, told: Mapping[int, bool]) -> Joint:
    """Return how lesson and start make one score; `told` are answers by row."""
    rows, labels = list(told), np.array([*told.values()], dtype=bool)
    has_yes, count = any(told.values()), len(start.score)
    trust = deviation_of(lesson.held_out) / deviation_of(start.score)
    if start.called is None:
        trust *= TRUST * (1 + (TOLD_PAGES if has_yes else FIRST_PAGES) / count)
    else:
        trust *= share_of_pack(lesson.held_out, trust * start.score, start.called, rows, labels)
    scores = lesson.held_out + trust * start.score
    prior_weight = 0.0 if start.called is None else trust
    if start.blind is not None:
        prior_weight = BLIND_WEIGHT * deviation_of(scores) / max(1.0, deviation_of(start.blind))
        scores = scores + prior_weight * start.blind
    if start.called is None:
        likely = None if has_yes else sigmoid(start.log_odds)
        guess = expected_place(scores, _expected(start.log_odds), likely)
    else:
        guess = expected_place(scores, start.called)
    return Joint(trust, prior_weight, find_threshold(scores, guess, scores[rows], labels))


def _expected(before: Numbers) -> float:
    """Return how many pages may be relevant by their log odds [n], 0 if none stands out."""
    least = min(BEST_PAGES, BEST_SHARE * len(before), float((before > STANDS_OUT).sum()))
    return max(float(sigmoid(before).sum()), least) if least else 0.0
