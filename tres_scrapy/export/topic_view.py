"""The pages of a crawl as its topic finds them now, not when they were fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import SHARD
from tres_scrapy.rights.signal import reserved_uses
from tres_scrapy.run.run_file import NAME, Fetch, StoredText
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.corrected_pack import odds_of
from tres_scrapy.topic.keyword_topic import THRESHOLD, PageWords, TopicFit
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.topic.topic_folder import TopicFolder, count_unlearned, find_folder, read_answers
from tres_scrapy.topic.topic_learner import LEAD, learn_answers
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import sha256

# A page that was relevant when it was fetched is so until P(relevant) falls below this: the models
# that a crawl learns from keywords differ in where relevant pages begin more than in their order.
STAYS: Final = 0.2


class TopicView(NamedTuple):
    """The model of now, the user's answers by URL, which count more, and what names the model."""

    fit: TopicFit
    answers: Mapping[str, bool]
    model: str

    def judge(self, page: Fetch, stored: StoredText, trained: float) -> tuple[float, bool]:
        """Return P(relevant) of a page, by a trained pack `trained`, and whether it is relevant."""
        url = page.final_url or page.url
        probability = float(self.fit.judge([words_of(page, stored, trained)])[0])
        answer = self.answers.get(url, self.answers.get(page.url))
        least = STAYS if page.relevant and not self.fit.prior_weight else THRESHOLD
        return probability, probability >= least if answer is None else answer


class Viewed(NamedTuple):
    """A page with its text, P(relevant), and whether it belongs into the output."""

    page: Fetch
    stored: StoredText
    probability: float
    relevant: bool


def topic_view(record: Record, say: Callable[[str], None] | None = None) -> TopicView | None:
    """Return the topic that a crawl learned: from keywords, answers, or as its pack was blind.

    It is None if the crawl learned nothing.

    With `say`, answers that are new are learned first; it receives what there is to say of that.
    """
    folder = topic_folder(record)
    if folder is None:
        return None
    lines = [*learn_answers(folder)] if say is not None and count_unlearned(folder) else []
    state = folder.read_state()
    answers = state.get("answers", {}) | read_answers(folder.answers, lines.append)
    if say is not None:
        for line in dict.fromkeys(lines):
            say(line)
    fit = TopicFit.of(Pack.load(folder.pack))
    if fit.is_uncorrected:  # it is not blind, and no answer was about a page fetched
        return None
    return TopicView(fit, answers, sha256(folder.pack / TOPIC_FILE))


def words_of(page: Fetch, stored: StoredText, trained: float) -> PageWords:
    """Return what a topic learns from a page, to which a pack gives P(relevant) `trained`."""
    url = page.final_url or page.url
    words = Text.of_page(stored.title, stored.text, url, stored.links).counts()
    return PageWords(url, stored.title, stored.text[:LEAD], words, prior=float(odds_of(trained)))


def view_pages(
    record: Record, view: TopicView | None, least: float | None = None
) -> Iterator[Viewed]:
    """Yield the relevant pages of a run, or all with a P(relevant) from `least` up.

    With `view`, P(relevant) and relevance are those of the topic of now; a page that cannot be
    relevant, whatever it is about, is not. Pages that are reserved for the use that the crawl named
    are left out.
    """
    use = {each.strip() for each in record.settings().get("TRES_USE", "").split(",")}
    with ExitStack() as opened:
        text = _texts(record, opened)
        for page in record.pages(least if view is None else 0.0):
            stored = text(page)
            if use.intersection(reserved_uses(stored.rights)):
                continue
            probability, relevant = page.probability or 0.0, page.relevant
            if view is not None:
                probability, relevant = view.judge(page, stored, record.trained(page))
                relevant = relevant and not record.remark(page)
            if relevant if least is None else probability >= least:
                yield Viewed(page, stored, probability, relevant)


def topic_folder(record: Record) -> TopicFolder | None:
    """Return the folder of the topic: in JOBDIR, beside the record, or beside the output.

    It is None if the crawl has a trained topic and was not asked for questions about it.
    """
    own = record.path.parent if record.path.name == NAME else record.path
    with suppress(TresError):
        return find_folder(own, Path(record.meta().get("output", own)))
    return None


def _texts(record: Record, opened: ExitStack) -> Callable[[Fetch], StoredText]:
    """Return what finds the text of a page; in a crawl in shards, its shard has it."""
    shards = record.shards()
    if shards == 1:
        return record.text
    folder = record.path.parent
    files = [folder / f"{SHARD}{shard}" / NAME for shard in range(shards)]
    parts = {
        shard: opened.enter_context(Record(file))
        for shard, file in enumerate(files)
        if file.is_file()
    }

    def text(page: Fetch) -> StoredText:
        row, shard = divmod(page.row, shards)
        return parts[shard].text(replace(page, row=row)) if shard in parts else record.text(page)

    return text
