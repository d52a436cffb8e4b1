"""The pages of an ended crawl from keywords, judged again by all that its topic has learned."""

from __future__ import annotations

from typing import Any, Final

from tres_scrapy.export.run_export import Pages, pages_of
from tres_scrapy.report.record import Record
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import TopicFolder, count_unlearned, read_answers
from tres_scrapy.topic.topic_learner import learn_answers

ALL: Final = 0.0  # least P(relevant): pages that were judged irrelevant too


def pages_judged_again(record: Record, folder: TopicFolder) -> Pages:
    """Yield the pages that are relevant by the topic of now; an answer counts more than the topic.

    Answers that the topic does not know yet are learned first.
    """
    if count_unlearned(folder):
        learn_answers(folder)
    pack, answers = Pack.load(folder.pack), read_answers(folder.answers)[0]
    for page in pages_of(record, ALL):
        if judged := _judged(page, pack, answers):
            yield judged


def _judged(page: dict[str, Any], pack: Pack, answers: dict[str, bool]) -> dict[str, Any]:
    """Return a page with its new probability, {} if it is not relevant."""
    text = Text.of(f"{page['title']} {page['text']}", page["url"])
    probability = float(pack.probabilities([text])[0])
    answer = answers.get(page["final_url"], answers.get(page["url"]))
    is_relevant = probability >= pack.threshold if answer is None else answer
    return page | {"probability": round(probability, 6), "relevant": True} if is_relevant else {}
