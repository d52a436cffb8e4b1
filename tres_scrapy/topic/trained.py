"""How much a trained pack counts in a crawl: if it is blind, and beside what answers taught."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tres_scrapy.topic.threshold import evidence, expected_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

# A trained pack is blind if it calls fewer than this share of the pages relevant that its keywords
# let expect, which are at least so many.
BLIND_SHARE: Final = 0.5
LEAST_EXPECTED: Final = 10
# Deviations of what a pack says that answers correct, beside one of what they taught.
SHARES: Final = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 16.0])


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
