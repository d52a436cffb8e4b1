"""The pages of a crawl as its topic finds them now, not when they were fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tres_scrapy.report.record import Record
from tres_scrapy.run.page_text import StoredText
from tres_scrapy.run.run_file import NAME, Fetch
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import TopicFolder, count_unlearned, find_folder, read_answers
from tres_scrapy.topic.topic_learner import learn_answers
from tres_scrapy.url.message import TresError


class TopicView(NamedTuple):
    """The model of now, and the user's answers by URL, which count more."""

    pack: Pack
    answers: Mapping[str, bool]

    def judge(self, page: Fetch, stored: StoredText) -> tuple[float, bool]:
        """Return P(relevant) of a page, and whether it is relevant."""
        url = page.final_url or page.url
        text = Text.of_page(stored.title, stored.text, url, stored.links)
        probability = float(self.pack.probabilities([text])[0])
        answer = self.answers.get(url, self.answers.get(page.url))
        return probability, probability >= self.pack.threshold if answer is None else answer


def topic_view(record: Record, say: Callable[[str], None]) -> TopicView | None:
    """Return the topic that a crawl learned from keywords, None if it learned none.

    Answers that are new are learned first; `say` receives what there is to say of that.
    """
    folder = _folder(record)
    if folder is None:
        return None
    if count_unlearned(folder):
        for line in learn_answers(folder):
            say(line)
    answers = folder.read_state().get("answers", {}) | read_answers(folder.answers)[0]
    return TopicView(Pack.load(folder.pack), answers)


def _folder(record: Record) -> TopicFolder | None:
    """Return the folder of the topic: in JOBDIR, beside the record, or beside the output."""
    own = record.path.parent if record.path.name == NAME else record.path
    for place in (own, Path(record.meta().get("output", own))):
        with suppress(TresError):
            return find_folder(place)
    return None
