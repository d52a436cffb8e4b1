"""How likely a page is relevant by the keywords alone, from how often its fields have them.

The keywords in a text count as in BM25 (Robertson, Zaragoza, 2009): rare words more, repetition
less. The words of the text add how near they are to the keywords in meaning. What a keyword in the
URL says differs from web to web: in some, URLs are numbers or names. What is likely by texts and
links tells, as one view of a page teaches another (co-training: Blum, Mitchell, 1998).

The coefficients are the same for every topic. The sites, universities, Wikipedia and newsgroups of
`benchmarks/judge.py` were all looked at when they were chosen, so figures on these webs are not of
unseen topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tres_scrapy.topic.classifier import FIELD_SHARES, RAREST_SHARE, sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.fit import Bags

    Numbers = NDArray[np.float64]

SATURATION: Final = 1.2  # of repeated words, in BM25
LENGTH: Final = 0.75  # how much a long text counts less, in BM25
LEAST_RARITY: Final = 0.1
GENERAL_TEXTS: Final = 200  # that the rarity of words in English counts for, beside pages
FIELDS: Final = len(FIELD_SHARES)
# Log odds: constant; roots of BM25 of text, links and URL, each a share of its limit; BM25 of the
# text; cosine of the text to the keywords, above that of English.
CONSTANT: Final = -3.5
ROOTS: Final = np.array([2.5, 2.0, 2.0])
TEXT: Final = 8.0
NEARNESS: Final = 14.0
# The log odds that a keyword in the URL adds, for 1 of the log of how much more often likely pages
# have one than others: more than 1, as it is not known which pages are relevant.
SHARPNESS: Final = 2.0
BY_ITSELF: Final = 1.5  # less so much: a page with a word in its text has it in its URL too
USUAL_PAGES: Final = 5  # of each kind, that have one as often as all do: few pages tell little
SHORTEST_DOUBLED: Final = 3  # letters of a word whose last is doubled, as in planning


def forms(word: str) -> set[str]:
    """Return a word and its English inflections, whichever of them it is."""
    found = {word}
    for ending, instead in (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e")):
        base = word.removesuffix(ending)
        if base != word and len(base) + len(instead) >= SHORTEST_DOUBLED and base[-1] != "s":
            found.add(base + instead)
            if base[-2:] == 2 * base[-1] and ending == "ing":  # planning
                found.add(base[:-1])
    for base in tuple(found):
        found.update(base + ending for ending in ("s", "es", "ed", "ing", "er", "ers"))
        if base.endswith("e"):
            found.update(base[:-1] + ending for ending in ("ing", "ed", "er", "ers"))
        if base.endswith("y"):
            found.update(base[:-1] + ending for ending in ("ies", "ied"))
        elif len(base) >= SHORTEST_DOUBLED:
            found.update(base + base[-1] + ending for ending in ("ing", "ed", "er", "ers"))
    return found


class Keyword(NamedTuple):
    """A keyword: its weight, the share of English texts with it, its words by field."""

    weight: float
    english: float
    rows: Sequence[Sequence[int]]


def log_odds(
    counts: Bags, fields: NDArray[np.int64], keywords: Sequence[Keyword], nearness: Numbers
) -> Numbers:
    """Return the log odds of each text by the keywords, [n].

    `fields` [width] is the field of each word: text, links, URL. `nearness` [n] is how near each
    text is to the keywords.
    """
    size, height = len(keywords), counts.height
    which = np.full(counts.width, -1)
    for place, keyword in enumerate(keywords):
        for field, rows in enumerate(keyword.rows):
            which[list(rows)] = field * size + place
    found = which[counts.ids]
    known = found >= 0
    cells = counts.rows[known] * FIELDS * size + found[known]
    often = np.bincount(cells, counts.values[known], height * FIELDS * size)
    often = often.reshape(height, FIELDS, size)
    cells = counts.rows * FIELDS + fields[counts.ids]
    length = np.bincount(cells, counts.values, height * FIELDS).reshape(height, FIELDS, 1)
    mean = np.maximum(1.0, length.mean(axis=0))
    general = np.full((FIELDS, size), RAREST_SHARE)
    general[0] = [keyword.english for keyword in keywords]
    share = GENERAL_TEXTS * general + (often > 0).sum(axis=0) + 0.5
    rarity = np.maximum(LEAST_RARITY, -np.log(share / (GENERAL_TEXTS + height + 1)))
    rarity *= [keyword.weight for keyword in keywords]
    slow = SATURATION * (1 - LENGTH + LENGTH * length / mean)
    parts = (rarity * often / (often + slow)).sum(axis=2) / rarity.sum(axis=1)  # [n, fields]
    *roots, url = (np.sqrt(parts) * ROOTS).T
    without_url = CONSTANT + sum(roots) + TEXT * parts[:, 0] + NEARNESS * nearness
    in_url = often[:, -1].sum(axis=1) > 0
    return np.asarray(without_url + url + in_url * url_worth(in_url, without_url))


def url_worth(in_url: NDArray[np.bool_], without_url: Numbers) -> float:
    """Return the log odds that a keyword in its URL adds to a page, 0 or more.

    `in_url` [n] says which pages have one; `without_url` [n] are the log odds of the pages by all
    the rest.
    """
    if not in_url.any():
        return 0.0
    likely = sigmoid(without_url)
    usual = USUAL_PAGES * float(in_url.mean())
    of_likely, of_others = (
        float((each @ in_url + usual) / (each.sum() + USUAL_PAGES)) for each in (likely, 1 - likely)
    )
    return max(0.0, SHARPNESS * float(np.log(of_likely / of_others)) - BY_ITSELF)
