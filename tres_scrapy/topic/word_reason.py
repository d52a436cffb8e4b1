"""Why a topic from keywords judges a kept page as it does: words, added words, answers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from tres_scrapy.topic.bag import BagOfWords
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.influence import moving_words
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.word_topic import alikeness
from tres_scrapy.url.message import printable

if TYPE_CHECKING:
    from tres_scrapy.topic.word_folder import WordFolder

SHOWN: Final = 8  # words of a kind
ANSWERS: Final = 3
LEAST: Final = 0.005  # log odds, which are shown with two digits


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
    told: bool  # whether the topic has any answer
    answer: bool | None = None  # about this page

    def __str__(self) -> str:
        """Return the reason as text."""
        lines = [f"Topic now: P(relevant) {self.probability:.3f}. Words, and what they add:"]
        named = {"keywords": self.given, "found by the model": self.added, "against": self.against}
        for name, words in named.items():
            said = ", ".join(f"{word} {value:+.2f}" for word, value in words)
            lines.append(f"  {name:18} {said or 'none'}")
        if self.answer is not None:
            lines.append(f"  You answered {'yes' if self.answer else 'no'} about this page.")
        if self.answers:
            lines.append("  Answers about pages with the same words:")
            lines += [
                f"  {each.adds:+6.2f}   {'yes' if each.relevant else 'no'} {printable(each.url)}"
                for each in self.answers
            ]
        elif self.told:
            lines.append("  No answer moved its words; answers also move the threshold.")
        return "\n".join(lines)


def topic_reason(folder: WordFolder, url: str) -> TopicReason | None:
    """Return why a page is relevant by a topic, None if the topic has not kept the page."""
    sheets = {sheet.url: sheet for *_, sheet in folder.read_pages()}
    if url not in sheets:
        return None
    pack, state = Pack.load(folder.pack), folder.read_state()
    text = Text(list(Counter(sheets[url].words).elements()))
    words = [
        (word, value)
        for word, value in moving_words(pack, text, len(text.words))
        if abs(value) >= LEAST
    ]
    own = {*pack.given, *(word for phrase in pack.keywords.phrases for word in phrase.split())}
    answers = state.get("answers", {})
    pulls = {each: pull for each, pull in state.get("pulls", {}).items() if each in sheets}
    assert isinstance(pack.classifier, BagOfWords)  # the folder holds no other
    near = alikeness(pack.classifier, sheets[url], [sheets[each] for each in pulls])
    effects = [
        AnswerEffect(each, answers[each], pull * like)
        for (each, pull), like in zip(pulls.items(), near, strict=True)
        if abs(pull * like) >= LEAST
    ]
    return TopicReason(
        float(pack.probabilities([text])[0]),
        [each for each in words if each[1] > 0 and each[0] in own][:SHOWN],
        [each for each in words if each[1] > 0 and each[0] not in own][:SHOWN],
        [each for each in words if each[1] < 0][:SHOWN],
        sorted(effects, key=lambda each: -abs(each.adds))[:ANSWERS],
        bool(answers),
        answers.get(url),
    )
