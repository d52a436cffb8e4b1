"""The features of x(s, a) in one table, and the path that the first three describe (P 2.4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Origin(Enum):
    """Where the value of a feature comes from."""

    STATE = "path to the page"
    URL = "URL"
    ANCHOR = "anchor text"
    LEDGER = "domain ledger"
    LINK = "link model"


class Unit(Enum):
    """The unit of a feature's value."""

    BINARY = "one of two values"
    SHARE = "share, 0 to 1"
    CLOSENESS = "1 / links"


SHARES: Final = tuple(np.linspace(0, 1, 21).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature of x(s, a) and its texts in reports.

    `grid` holds the values that plots evaluate. `rule` (in a sentence) and `brief` (in a box) are
    the texts of a condition on the feature. A binary feature has one text for each value, lower
    value first; other features have one text with {} for the interval.
    """

    name: str
    number: int | None  # in the paper
    origin: Origin
    unit: Unit
    label: str
    meaning: str
    rule: tuple[str, ...]
    brief: tuple[str, ...]
    grid: tuple[float, ...] = SHARES
    bucketed: bool = False

    @property
    def live(self) -> bool:
        """Whether the value changes during the crawl."""
        return self.origin in {Origin.LEDGER, Origin.LINK}


# The columns of x. Features of one origin stand together, the live ones last.
TABLE: Final = (
    Feature(
        name="parent_reward",
        number=1,
        origin=Origin.STATE,
        unit=Unit.BINARY,
        label="on a relevant page",
        meaning="1 if the page with the link is relevant, else 0",
        rule=("found on an irrelevant page", "found on a relevant page"),
        brief=("from an irrelevant page", "from a relevant page"),
        grid=(0.0, 1.0),
    ),
    Feature(
        name="path_closeness",
        number=2,
        origin=Origin.STATE,
        unit=Unit.CLOSENESS,
        label="closeness of a relevant page",
        meaning="1 / links since the last relevant page on the path; 0 without such a page",
        rule=("that are {} after a relevant page",),
        brief=("links since relevant {}",),
        grid=(0.0, 0.1, 0.125, 0.2, 0.25, 1 / 3, 0.5, 1.0),
        bucketed=True,
    ),
    Feature(
        name="path_relevance",
        number=3,
        origin=Origin.STATE,
        unit=Unit.SHARE,
        label="relevant share of the path",
        meaning="share of relevant pages on the path from the seed",
        rule=("with {} relevant pages on the path",),
        brief=("path {} relevant",),
        bucketed=True,
    ),
    Feature(
        name="keyword_in_url",
        number=4,
        origin=Origin.URL,
        unit=Unit.BINARY,
        label="keyword in the URL",
        meaning="1 if the URL contains a keyword, else 0",
        rule=("without a keyword in the URL", "with a keyword in the URL"),
        brief=("no keyword in URL", "keyword in URL"),
        grid=(0.0, 1.0),
    ),
    Feature(
        name="keyword_in_anchor",
        number=5,
        origin=Origin.ANCHOR,
        unit=Unit.BINARY,
        label="keyword in the anchor text",
        meaning="1 if the anchor text contains a keyword, else 0",
        rule=("without a keyword in the anchor text", "with a keyword in the anchor text"),
        brief=("no keyword in text", "keyword in text"),
        grid=(0.0, 1.0),
    ),
    Feature(
        name="anchor_probability",
        number=6,
        origin=Origin.ANCHOR,
        unit=Unit.SHARE,
        label="P(relevant) of the anchor text",
        meaning="P(relevant) of the anchor text, by the topic's classifier",
        rule=("whose anchor text is {} likely to be relevant",),
        brief=("P(text) {}",),
    ),
    Feature(
        name="domain_relevance",
        number=7,
        origin=Origin.LEDGER,
        unit=Unit.SHARE,
        label="relevant share of the domain",
        meaning="share of relevant pages of the domain, or of its inlinks if it is new",
        rule=("to a domain that is {} relevant",),
        brief=("domain {} relevant",),
        bucketed=True,
    ),
    Feature(
        name="domain_known",
        number=8,
        origin=Origin.LEDGER,
        unit=Unit.BINARY,
        label="known domain",
        meaning="1 if the domain was visited before or is being fetched, else 0.5",
        rule=("to a new domain", "to a known domain"),
        brief=("new domain", "known domain"),
        grid=(0.5, 1.0),
    ),
    Feature(
        name="link_probability",
        number=None,
        origin=Origin.LINK,
        unit=Unit.SHARE,
        label="P(relevant) of the link",
        meaning="P(relevant) by what the link says, as learned in this crawl",
        rule=("whose link is {} likely to lead to a relevant page",),
        brief=("P(link) {}",),
    ),
)
FEATURES: Final = tuple(feature.name for feature in TABLE)


def _columns(*origins: Origin) -> slice:
    columns = [column for column, feature in enumerate(TABLE) if feature.origin in origins]
    return slice(columns[0], columns[-1] + 1)


STATE: Final = _columns(Origin.STATE)
PARENT_REWARD: Final = STATE.start
ACTION: Final = _columns(Origin.URL, Origin.ANCHOR)
NEIGHBOURHOOD: Final = _columns(Origin.LEDGER)
KNOWN_DOMAIN: Final = NEIGHBOURHOOD.stop - 1
LINK: Final = _columns(Origin.LINK).start
STATIC: Final = NEIGHBOURHOOD.start  # the number of features that no fetch elsewhere changes
BUCKETED: Final = tuple(column for column, feature in enumerate(TABLE) if feature.bucketed)


class Path(NamedTuple):
    """The path from the seed to page v: state s of v's outlinks.

    `reward` is the reward of v. `distance` counts pages back to the closest relevant page; v
    itself has distance 1. Without a relevant page it is infinite.
    """

    reward: float
    length: int
    relevant: int
    distance: float

    def extended(self, reward: float) -> Path:
        """Return the path with one more page, whose reward is `reward`."""
        relevant = reward > 0
        distance = 1 if relevant else self.distance + 1
        return Path(reward, self.length + 1, self.relevant + relevant, distance)

    @property
    def features(self) -> tuple[float, float, float]:
        """Features 1 to 3: reward of v, closeness of relevance, share of relevant pages."""
        return self.reward, 1 / self.distance, self.relevant / max(1, self.length)


NO_PATH = Path(0.0, 0, 0, math.inf)  # the state s_-1 in which a seed is chosen
SEED_PATH = NO_PATH.extended(1.0)  # of an answer that is no page: it counts as a relevant seed


def bucket(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return `x` [n, 9] with features 2, 3 and 7 cut to the lower edge of ten buckets (P1)."""
    x = x.copy()
    # The slack keeps a float32 0.3, just under three tenths, in the bucket it belongs to.
    x[:, BUCKETED] = np.minimum(np.floor(x[:, BUCKETED] * 10 + 1e-4), 9) / 10
    return x
