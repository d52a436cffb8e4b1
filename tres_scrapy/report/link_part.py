"""What the link model says: the parts of P(relevant | link) of a link, its strongest weights."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.frontier.feature import TABLE
from tres_scrapy.links.code import (
    BITS,
    CODES,
    MAX_NAME_LENGTH,
    PARTS,
    RUNS,
    SIZE,
    CueGroup,
    Fact,
    Names,
    coded,
    read_url,
    url_places,
)
from tres_scrapy.links.model import KNOWN, LinkEvidence
from tres_scrapy.page.place import WORD

FOR: Final = 4  # parts kept of those that speak for a link
AGAINST: Final = 3
SPOKEN: Final = (3, 2)  # parts for and against in a sentence
FAINTEST: Final = 0.05  # a part that adds less to the logit is left out
WEIGHTS: Final = 8  # of a group for a link, and as many against it
FETCHED: Final = 3  # fewer fetched links say too little about a word
_STRONGEST: Final = 100  # weights of a group, of which those with other texts are kept
FEATURE: Final = "feature"  # the group of known facts
UNKNOWN: Final = "not known"
GROUPS: Final = {group.name.lower(): group for group in CueGroup}
_URL_WORD: Final = re.compile(rb"[^a-z0-9~%]*([a-z0-9~%]+)(?:[^a-z0-9~%]+$)?")
_KNOWN: Final = {
    "one": "any link",
    "siblings": "results of links beside it",
    "host_logit": "last results of its host",
    "anchor_logit": 6,
}


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
    most, most_against = SPOKEN
    against = [f"against: {', '.join(bad[:most_against])}"] if bad else []
    return ", ".join([*good[:most], *against])


def parts_of(said: LinkEvidence, names: Names) -> list[LinkPart]:
    """Return the strongest parts for a link, then those against it, each strongest first."""
    found = sorted([*_url_parts(said), *_other_parts(said)], key=itemgetter(0))
    good = [each for each in found[: -FOR - 1 : -1] if each[0] >= FAINTEST]
    bad = [each for each in found[:AGAINST] if each[0] <= -FAINTEST]
    return [LinkPart(*_named(said, names, part), round(adds, 3)) for adds, part in good + bad]


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
    told = _KNOWN[name] if isinstance(name, str) else name
    if isinstance(told, str):
        return told
    return next(feature.label for feature in TABLE if feature.number == told)


def _url_parts(said: LinkEvidence) -> Iterator[tuple[float, str | int]]:
    """Yield the words of a URL; each character has its share of the runs that hold it."""
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
    for part, adds in found.items():
        yield adds, part


def _other_parts(said: LinkEvidence) -> Iterator[tuple[float, str | int]]:
    """Yield the other weights by number; that of the end of the path stands for the path."""
    first = _run_count(said.url)
    where, adds = said.where[first:], said.adds[first:].copy()
    path = np.flatnonzero(where >> BITS == CueGroup.PATH)
    if len(path):
        adds[path[0]], adds[path[1:]] = adds[path].sum(), 0
    yield from zip(adds.tolist(), where.tolist(), strict=True)


def _named(said: LinkEvidence, names: Names, part: str | int) -> tuple[str, str]:
    """Return the group and the text of a word of the URL or of the number of a weight."""
    if isinstance(part, str):
        return CueGroup.URL.name.lower(), part[:MAX_NAME_LENGTH]
    if part >= CODES:
        return FEATURE, known_name(part - CODES)
    group = CueGroup(part >> BITS)
    text = names.text(part)
    if group is CueGroup.FACT:
        text = fact_name(part & (SIZE - 1))
    elif group is CueGroup.HOST:
        text = next(each for each in url_places(said.url) if coded(group, [each])[0] == part)
    elif group is CueGroup.ANCHOR:  # exact, even if another word has the same code
        own = WORD.findall(said.anchor.lower())
        text = next((word for word in own if coded(group, [word])[0] == part), text)
    return group.name.lower(), (text or UNKNOWN)[:MAX_NAME_LENGTH]


def _run_count(url: str) -> int:
    length = len(read_url(url))
    return sum(max(0, length - run + 1) for run in RUNS)


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
    found[FEATURE] = [each for each in features if abs(each.weight) >= FAINTEST]
    found[FEATURE].sort(key=lambda each: -each.weight)
    return {group: weights for group, weights in found.items() if weights}


def _of_group(learner: LinkLearner, names: Names, group: CueGroup) -> list[LinkWeight]:
    first = group << BITS
    codes = np.flatnonzero(learner.fetched[first : first + SIZE] >= FETCHED) + first
    codes = codes[np.argsort(-learner.model.weights[codes], kind="stable")]
    good = _different(group, _weights_of(learner, names, codes[:_STRONGEST], 1))
    bad = _different(group, _weights_of(learner, names, codes[-_STRONGEST:], -1))
    return [*good, *bad[::-1]]


def _weights_of(
    learner: LinkLearner, names: Names, codes: NDArray[np.int64], sign: int
) -> Iterator[LinkWeight]:
    """Yield the weights of a sign, strongest first, longer texts first among equals."""
    found = []
    for code in codes.tolist():
        fact = code >> BITS == CueGroup.FACT
        text = fact_name(code & (SIZE - 1)) if fact else names.text(code)
        weight = round(float(learner.model.weights[code]), 3)
        if text and sign * weight >= FAINTEST:
            counts = int(learner.fetched[code]), int(learner.rewarded[code])
            found.append(LinkWeight(text, weight, *counts))
    yield from sorted(found, key=lambda each: (-sign * each.weight, -len(each.text)))


def _different(group: CueGroup, found: Iterator[LinkWeight]) -> list[LinkWeight]:
    """Return the first weights, without runs and paths that share much with a stronger one."""
    kept: list[LinkWeight] = []
    for each in found:
        if len(kept) == WEIGHTS:
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
