"""Pages that are thought to be alike: of one host and folder, and as arms of a bandit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.refresh.bandit import Floats
from tres_scrapy.refresh.page_policy import Ints

MOST_ARMS = 64
NUMBERS = re.compile(r"\d+")


def group_name(url: str) -> str:
    """Return the host and first folder of a URL, its numbers left out: a/2024/x is a/#."""
    parts = urlsplit(url)
    folder = parts.path.split("/")[1] if parts.path.count("/") > 1 else ""
    return f"{parts.hostname or ''}/{NUMBERS.sub('#', folder)}"


def kind_name(url: str) -> str:
    """Return the first folder of a URL: news is news on any host."""
    return group_name(url).partition("/")[2]


def number(names: Sequence[str]) -> Ints:
    """Return names as whole numbers from 0, equal ones for equal names."""
    return np.unique(np.array(names, dtype=str), return_inverse=True)[1].astype(np.int64)


def arms_of(groups: Ints, rates: Floats, weights: Floats, most: int = MOST_ARMS) -> Ints:
    """Return the arm of each page: its group, or groups of like rates and weights if many.

    Groups are put in the order of their mean rate, then weight, and cut into arms of about as many
    pages each.
    """
    count = np.bincount(groups)
    if len(count) <= most:
        return groups
    rate, weight = (np.bincount(groups, column) / count for column in (rates, weights))
    order = np.lexsort((weight, rate))
    before = np.cumsum(count[order]) - count[order]
    arm = np.empty(len(count), np.int64)
    arm[order] = before * most // len(groups)
    return np.unique(arm[groups], return_inverse=True)[1].astype(np.int64)
