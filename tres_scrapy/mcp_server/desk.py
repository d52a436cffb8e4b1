"""What an agent can ask of a crawl: each method answers one tool with a short text."""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from tres_scrapy.export.corrected_topic import topic_to_answer
from tres_scrapy.export.run_export import WRITERS, check_ending, pages_of
from tres_scrapy.export.topic_view import topic_view
from tres_scrapy.mcp_server.reply import cut, reply
from tres_scrapy.mcp_server.workplace import Workplace
from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import Fetch
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers, find_folder
from tres_scrapy.topic.topic_learner import learn_answers
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import whole_file

MOST: Final = 20  # pages of a reply
LEAD: Final = 600  # characters of a text beside others
PART: Final = 4_000  # bytes of a text alone
LONG_PART: Final = 15_000


@dataclass
class Desk:
    """Answers an agent about the crawls of a workplace; errors are TresError, in one line."""

    workplace: Workplace

    def start_crawl(
        self,
        name: str,
        seeds: list[str],
        topic: str = "",
        keywords: list[str] | None = None,
        pages: int = 200,
    ) -> str:
        """Start a crawl under a new name: from a trained topic, or from about ten keywords.

        Seeds are URLs with links to the topic. Ask crawl_state for its progress.
        """
        self.workplace.start(name, seeds, topic, keywords or [], pages)
        return reply({"started": name, "pages": pages, "seeds": seeds}, long=False)

    def resume_crawl(self, name: str) -> str:
        """Resume a crawl that was stopped."""
        self.workplace.resume(name)
        return reply({"resumed": name}, long=False)

    def stop_crawl(self, name: str) -> str:
        """Stop a crawl and wait for its end; it can be resumed."""
        self.workplace.stop(name)
        return self.crawl_state(name)

    def list_crawls(self) -> str:
        """List the crawls and say which of them run."""
        names = self.workplace.names()
        rows = [{"name": name, "is_running": self.workplace.is_running(name)} for name in names]
        return reply({"crawls": len(rows)}, rows, long=False)

    def crawl_state(self, name: str) -> str:
        """Say how far a crawl is: pages, relevant pages, sites, why it ended, open questions."""
        facts: dict[str, Any] = {"name": name, "is_running": self.workplace.is_running(name)}
        if facts["is_running"] and not self.workplace.has_record(name):
            return reply(facts | {"pages": 0, "relevant": 0, "ended": ""}, long=False)
        with Record(self.workplace.record(name)) as record, record.moment():
            count, meta = record.count(), record.meta()
            pages = sum(count.get(kind, 0) for kind in ("relevant", "irrelevant", "copy"))
            facts |= {"topic": meta.get("topic", ""), "ended": meta.get("reason", "")}
            facts |= {"pages": pages, "relevant": count.get("relevant", 0), "fetches": count}
            rows = [
                {"site": site, "pages": all_pages, "relevant": good}
                for site, all_pages, good in record.domains(5)
            ]
        with suppress(TresError):  # a trained topic has none before it was asked for them
            facts["open_questions"] = len(find_folder(self.workplace.job(name)).open_questions())
        return reply(facts | {"log_data": self.workplace.last_line(name)}, rows, long=False)

    def questions(self, name: str, count: int = 5) -> str:
        """Return pages of a crawl about which an answer helps its topic most.

        Read title and text, decide whether each page is of the topic, and call answer.
        """
        asked = self._topic(name).open_questions()
        rows = [
            {"url": each["url"], "probability": each["probability"], "why": each["why"]}
            | {"title_data": each["title"], "text_data": each["text"][:LEAD]}
            for each in asked[: _number("count", count)]
        ]
        return reply({"open_questions": len(asked)}, rows, long=False)

    def answer(self, name: str, yes: list[str] | None = None, no: list[str] | None = None) -> str:
        """Say which pages are relevant to the topic of a crawl, by their URLs.

        A running crawl learns them with its next pages; one that has ended, at its export.
        """
        folder = self._topic(name, {*(yes or []), *(no or [])})
        good, bad = folder.find_pages(yes or []), folder.find_pages(no or [])
        if both := set(good) & set(bad):
            raise TresError(f"yes and no for {min(both)}: give one answer")
        if not good and not bad:
            raise TresError("give yes, no or both")
        add_answers(folder.answers, dict.fromkeys(good, True) | dict.fromkeys(bad, False))
        return reply({"yes": good, "no": bad}, long=False)

    def explain_page(self, name: str, url: str, long: bool = False) -> str:
        """Explain why a crawl fetched a page: its path, its link, and the rivals of that link."""
        with Record(self.workplace.record(name)) as record, record.moment():
            explanation = FetchExplanation(record, canonicalise(url) or url)
            facts = {"url": explanation.address, "explanation_data": str(explanation)}
        return reply(facts, long=long)

    def search_pages(self, name: str, words: str = "", count: int = 5, long: bool = False) -> str:
        """Return the latest relevant pages that have all the words in title, URL or first words."""
        with Record(self.workplace.record(name)) as record, record.moment():
            found = record.relevant(_number("count", count), words=words)
            rows = [_row(page) | {"text_data": page.text[:LEAD]} for page in found]
        return reply({"found": len(rows)}, rows, long=long)

    def page_text(self, name: str, url: str, offset: int = 0, long: bool = False) -> str:
        """Return the text of a fetched page from a character on.

        The rest begins at `next_offset`, if there is one.
        """
        with Record(self.workplace.record(name)) as record, record.moment():
            page = record.find(canonicalise(url) or url)
            if page is None:
                raise TresError(f"{url[:200]} was not fetched")
            text = record.text(page).text
        first, most = max(0, offset), LONG_PART if long else PART
        part = cut(text[first:], most)
        facts = {"characters": len(text), "offset": first}
        if first + len(part) < len(text):
            facts["next_offset"] = first + len(part)
        return reply(_row(page) | facts | {"text_data": part}, long=long)

    def export(self, name: str, ending: str = "jsonl", least: float | None = None) -> str:
        """Write the relevant pages into the folder of the crawl: jsonl, csv, parquet or md.

        A crawl that learned, and has ended, is judged again first, with all answers. With least,
        all pages whose P(relevant) was that or more when they were fetched.
        """
        if least is not None and not 0 <= least <= 1:
            raise TresError("least must be from 0 to 1")
        target = self.workplace.place(name) / f"export.{ending}"
        ending = check_ending(target)
        judges = least is None and not self.workplace.is_running(name)
        with Record(self.workplace.record(name)) as record:
            view = topic_view(record, lambda _: None) if judges else None
            with whole_file(target) as file:
                WRITERS[ending](pages_of(record, least, view), file)
        return reply({"file": str(target), "judged_again": view is not None}, long=False)

    def _topic(self, name: str, wanted: Set[str] = frozenset()) -> TopicFolder:
        """Return the folder of a crawl's topic; one with a trained topic gets it from its record.

        It then has the pages with a URL in `wanted`.
        """
        with suppress(TresError):
            return find_folder(self.workplace.job(name))
        with Record(self.workplace.record(name)) as record:
            folder = topic_to_answer(record, wanted)
        learn_answers(folder)  # writes its questions
        return folder


TOOLS: Final = (
    Desk.start_crawl,
    Desk.crawl_state,
    Desk.list_crawls,
    Desk.questions,
    Desk.answer,
    Desk.search_pages,
    Desk.page_text,
    Desk.explain_page,
    Desk.export,
    Desk.stop_crawl,
    Desk.resume_crawl,
)


def _row(page: Fetch) -> dict[str, Any]:
    url = page.final_url or page.url
    return {"url": url, "title_data": page.title, "probability": page.probability}


def _number(name: str, value: int) -> int:
    if not 1 <= value <= MOST:
        raise TresError(f"{name} must be from 1 to {MOST}")
    return value
