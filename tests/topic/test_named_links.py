"""The words of links leave the judge's process as codes, and each once by name."""

from contextlib import closing

import numpy as np
import pytest
from conftest import PROJECT

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.links.code import BITS, CueGroup, Wordbook, coded
from tres_scrapy.topic.judge import Source, judge_pages
from tres_scrapy.topic.judge_process import Task, Worker
from tres_scrapy.topic.pack import Pack

FOOD = PROJECT / "models" / "food"
LIMITS = ReadingLimits()
PAGES = [
    Source(
        f"<title>list</title><p>{word} with butter: <a href=/x>{word} soup</a></p>".encode(), url
    )
    for word, url in (("pea", "http://a.test/"), ("leek", "http://b.test/"))
]


def texts(judged, group):
    return {text for code, text in judged.names if code >> BITS == group}


def test_new_words_of_each_page_are_told():
    first, second = judge_pages(Pack.load(FOOD), PAGES, limits=LIMITS, words=Wordbook())
    assert texts(first, CueGroup.ANCHOR) == {"pea", "soup"}
    assert texts(second, CueGroup.ANCHOR) == {"leek"}
    assert texts(second, CueGroup.PATH) == set()
    (leek,) = coded(CueGroup.ANCHOR, ["leek"])
    assert leek in second.cues.codes
    assert (leek, "leek") in second.names


def test_places_are_not_sent():
    (judged,) = judge_pages(Pack.load(FOOD), PAGES[:1], limits=LIMITS, words=Wordbook())
    assert judged.page.places == ()
    assert judged.page.links
    assert judged.cues.counts.sum() > 5


def test_pages_without_cues_have_no_names():
    (judged,) = judge_pages(Pack.load(FOOD), PAGES[:1], limits=LIMITS)
    assert judged.names == ()
    assert judged.cues.counts.tolist() == [0]


@pytest.mark.long
@pytest.mark.usefixtures("loaded_python")
def test_process_tells_a_word_once():
    with closing(Worker(Task(FOOD, LIMITS, cues=True))) as worker:
        worker.wait()
        first, second = worker(PAGES[:1]), worker(PAGES[:1])
    assert texts(first[0], CueGroup.AROUND) == {"pea", "with", "butter"}
    assert second[0].names == ()
    np.testing.assert_array_equal(first[0].cues.codes, second[0].cues.codes)
