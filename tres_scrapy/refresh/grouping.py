"""Groups of similar pages: by host and folder, and merged into the arms of a bandit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.refresh.page_table import Ints
from tres_scrapy.refresh.rate import Floats

MOST_ARMS = 64
NUMBERS = re.compile(r"\d+")


def group_name(url: str) -> str:
    """Return the host and first folder of a URL with numbers as #: a/2024/x gives a/#."""
    parts = urlsplit(url)
    folder = parts.path.split("/")[1] if parts.path.count("/") > 1 else ""
    return f"{parts.hostname or ''}/{NUMBERS.sub('#', folder)}"


def kind_name(url: str) -> str:
    """Return the first folder of a URL: folders of one name on all hosts form a group."""
    return group_name(url).partition("/")[2]


def number(names: Sequence[str]) -> Ints:
    """Return a number from 0 for each name; equal names have equal numbers."""
    return np.unique(np.array(names, dtype=str), return_inverse=True)[1].astype(np.int64)


def arms_of(groups: Ints, rates: Floats, weights: Floats, most: int = MOST_ARMS) -> Ints:
    """Return the arm of each page: its group, or merged groups if there are more than `most`.

    Groups are ordered by mean rate, then by mean weight, and cut into arms with about the same
    number of pages.
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
