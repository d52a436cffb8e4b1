"""Explains a verdict: keywords of a document, words that changed P(relevant), answers (P 3.3).

For a linear model, the log odds of all words and the intercept add up to those of the document. For
a network, the log odds of a word are gradient times input, a first-order approximation.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from textwrap import shorten
from typing import TYPE_CHECKING, Final, NamedTuple

from tres_scrapy.topic.classifier import LINK, URL, Text
from tres_scrapy.topic.keyword_topic import TopicFit, alikeness
from tres_scrapy.topic.pack import Pack, text_of
from tres_scrapy.url.message import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tres_scrapy.page.text import Page
    from tres_scrapy.topic.topic_folder import TopicFolder

TITLE_LENGTH: Final = 100
KEYWORDS_SHOWN: Final = 10
WORDS_SHOWN: Final = 8  # of a kind
ANSWERS_SHOWN: Final = 3
LEAST_EFFECT: Final = 0.005  # log odds, which are shown with two digits


@dataclass(frozen=True, slots=True)
class PageExplanation:
    """The verdict on one document and the reasons for it."""

    name: str  # its URL or file
    title: str
    probability: float
    threshold: float
    language: str  # ISO 639-1, "" if unknown
    expected_language: str  # the language of the pack, "" for any
    has_text: bool
    keywords: dict[str, int]  # the most frequent first
    words: list[tuple[str, float]]  # log odds that a word added, the largest first

    @property
    def relevant(self) -> bool:
        """Whether P(relevant) is at the threshold or above."""
        return self.probability >= self.threshold

    @property
    def is_foreign(self) -> bool:
        """Whether the document is in another language than the pack's training documents."""
        return bool(self.expected_language) and self.language not in {self.expected_language, ""}

    def as_json(self) -> str:
        """Return one line of ASCII JSON, safe to show on a terminal."""
        return json.dumps(
            {
                "name": self.name,
                "title": self.title,
                "probability": self.probability,
                "threshold": self.threshold,
                "relevant": self.relevant,
                "language": self.language,
                "keywords": self.keywords,
                "words": [[word, round(value, 4)] for word, value in self.words],
            },
            allow_nan=False,
        )

    def as_line(self) -> str:
        """Return one line for people to read."""
        verdict = "relevant" if self.relevant else "other"
        language = f"in {self.language}" if self.is_foreign else ""
        note = language if self.has_text else "no text"
        return (
            f"{self.probability:5.3f} {verdict:8} {note:7} {printable(self.name)}  {self._heading}"
        ).rstrip()

    def as_block(self) -> str:
        """Return a few lines for people to read, with all details."""
        lines = [printable(self.name), self._heading, *self._verdict()]
        if self.keywords:
            shown = [f"{word} {count}" for word, count in self.keywords.items()]
            rest = len(shown) - KEYWORDS_SHOWN
            more = f" and {rest} more" if rest > 0 else ""
            lines.append(f"keywords  {', '.join(shown[:KEYWORDS_SHOWN])}{more}")
        for label, sign in (("for", 1), ("against", -1)):
            moved = [f"{word} {value:+.2f}" for word, value in self.words if value * sign > 0]
            if moved:
                lines.append(f"{label:9} {', '.join(moved)}")
        return "\n  ".join(line for line in lines if line)

    def _verdict(self) -> list[str]:
        if not self.has_text:
            return [f"no text: every empty page gets probability {self.probability:.2f}"]
        verdict = "relevant" if self.relevant else "not relevant"
        figures = f"{verdict}: P = {self.probability:.3f}, threshold {self.threshold:.3f}"
        if self.is_foreign:
            expected = self.expected_language
            note = f"the pack reads {expected}, so its probability is unreliable"
            return [figures, f"language  {self.language}: {note}"]
        return [figures, f"language  {self.language or 'unknown'}"]

    @property
    def _heading(self) -> str:
        return shorten(printable(self.title), TITLE_LENGTH, placeholder=" ...")


@dataclass(slots=True)
class Totals:
    """Counts of judged documents by result."""

    judged: int = 0
    relevant: int = 0
    without_text: int = 0
    unreadable: int = 0
    foreign: Counter[str] = field(default_factory=Counter)

    def add(self, verdicts: Iterable[PageExplanation]) -> None:
        """Count judged documents."""
        for each in verdicts:
            self.judged += 1
            self.relevant += each.relevant
            self.without_text += not each.has_text
            if each.is_foreign:
                self.foreign[each.language] += 1

    def __str__(self) -> str:
        parts = [f"{self.judged} judged, {self.relevant} of them relevant"]
        if self.foreign:
            codes = ", ".join(f"{code} {count}" for code, count in self.foreign.most_common())
            parts.append(
                f"{self.foreign.total()} in a language that the pack does not read: {codes}"
            )
        if self.without_text:
            parts.append(f"{self.without_text} without text")
        if self.unreadable:
            parts.append(f"{self.unreadable} could not be read")
        return "; ".join(parts)


def explain(pack: Pack, pages: Sequence[Page], *, words: int) -> list[PageExplanation]:
    """Return the verdict on each page, with up to `words` words that moved it most.

    All pages are judged in one call of the model; their words take one more call for each page.
    """
    texts = [text_of(page) for page in pages]
    probabilities = pack.probabilities(texts).tolist()
    return [
        PageExplanation(
            name=page.url,
            title=" ".join(page.title.split()),
            probability=probability,
            threshold=pack.threshold,
            language=page.language,
            expected_language=pack.language,
            has_text=bool(text.words),
            keywords=dict(pack.keywords.counts(text.words).most_common()),
            words=moving_words(pack, text, words),
        )
        for page, text, probability in zip(pages, texts, probabilities, strict=True)
    ]


def moving_words(pack: Pack, text: Text, count: int) -> list[tuple[str, float]]:
    """Return the words that changed the log odds most, up or down, and by how much."""
    if not count:
        return []
    slope = pack.calibration.slope
    added = {word: slope * value for word, value in pack.classifier.contributions(text).items()}
    return _heaviest(added)[:count]


def _heaviest(added: Mapping[str, float]) -> list[tuple[str, float]]:
    moved = [(word, value) for word, value in added.items() if value]
    return sorted(moved, key=lambda each: (-abs(each[1]), each[0]))


class AnswerEffect(NamedTuple):
    """An answer about a page, and what it added to the log odds of another by its words."""

    url: str
    relevant: bool
    adds: float


class TopicReason(NamedTuple):
    """P(relevant) of a page by the topic as it is now, and what adds to its log odds."""

    probability: float
    given: list[tuple[str, float]]  # of the user's keywords
    added: list[tuple[str, float]]  # of words that the model has found
    against: list[tuple[str, float]]
    answers: list[AnswerEffect]
    has_answers: bool  # whether the topic has any
    answer: bool | None = None  # about this page
    pack: float | None = None  # what the trained pack adds, which the topic corrects

    def __str__(self) -> str:
        """Return the reason as text."""
        lines = [f"Topic now: P(relevant) {self.probability:.3f}. Words, and what they add:"]
        if self.pack is not None:
            lines.append(f"  {'the trained pack':18} {self.pack:+.2f}")
        named = {"keywords": self.given, "found by the model": self.added, "against": self.against}
        for name, words in named.items():
            shown = ", ".join(f"{word} {value:+.2f}" for word, value in words)
            lines.append(f"  {name:18} {shown or 'none'}")
        if self.answer is not None:
            lines.append(f"  You answered {'yes' if self.answer else 'no'} about this page.")
        if self.answers:
            lines.append("  Answers about pages with the same words:")
            lines += [
                f"  {each.adds:+6.2f}   {'yes' if each.relevant else 'no'} {printable(each.url)}"
                for each in self.answers
            ]
        elif self.has_answers:
            lines.append("  No answer moved its words; answers also move the threshold.")
        return "\n".join(lines)


def topic_reason(folder: TopicFolder, url: str) -> TopicReason | None:
    """Return why a page is relevant by a topic, None if the topic has not kept the page.

    So it is if the topic is a trained pack that stands alone.
    """
    pages = {page.url: page for *_, page in folder.read_pages()}
    if url not in pages:
        return None
    pack, state = Pack.load(folder.pack), folder.read_state()
    fit = TopicFit.of(pack)
    if fit.is_uncorrected:
        return None
    model, slope = fit.model, fit.calibration.slope
    added = model.contributions_of_counts(pages[url].words)
    words = _heaviest({word: slope * value for word, value in added.items()})
    words = [each for each in words if abs(each[1]) >= LEAST_EFFECT]
    given = (*pack.given, *(word for phrase in pack.keywords.phrases for word in phrase.split()))
    own = {prefix + word for word in given for prefix in ("", LINK, URL)}
    answers = state.get("answers", {})
    pulls = {each: pull for each, pull in state.get("pulls", {}).items() if each in pages}
    near = alikeness(model, pages[url], [pages[each] for each in pulls])
    effects = [
        AnswerEffect(each, answers[each], pull * like)
        for (each, pull), like in zip(pulls.items(), near, strict=True)
        if abs(pull * like) >= LEAST_EFFECT
    ]
    return TopicReason(
        float(fit.judge([pages[url]])[0]),
        [each for each in words if each[1] > 0 and each[0] in own][:WORDS_SHOWN],
        [each for each in words if each[1] > 0 and each[0] not in own][:WORDS_SHOWN],
        [each for each in words if each[1] < 0][:WORDS_SHOWN],
        sorted(effects, key=lambda each: -abs(each.adds))[:ANSWERS_SHOWN],
        bool(answers),
        answers.get(url),
        slope * fit.prior_weight * (pages[url].prior or 0.0) if fit.prior_weight else None,
    )
