"""A small crawl in memory whose links say what is behind them, and its record."""

import numpy as np
from judged import judged, told

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import LearningOptions, LinkOptions
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.links.code import Wordbook, page_codes
from tres_scrapy.page.text import read_page
from tres_scrapy.run.writer import Writer
from tres_scrapy.topic.keyword import KeywordSet

META = {"topic": "food", "policy": "tres"}
BLOCK = """<h2>{heading}</h2><div class="{style}"><ul>{items}</ul></div>"""
ITEM = '<li><a href="http://{word}{host}.test/{word}/{number}">{anchor}</a> {around}</li>'


def crawl_of(pages=120, *, is_new=True, **links):
    """Return a crawl of TRES; `links` are options of its link model.

    A site gives 38 pages at most, so that pages of engines are fetched at last. One that is not
    new is to be recovered.
    """
    store = SampleStore(DomainLedger(Cap(38, 38)))
    learning = LearningOptions(exploration_steps=10)
    setup = PolicyInputs(0, learning=learning, links=LinkOptions(**links))
    crawl = Crawl(store, make_policy("tres", store, setup), pages)
    if is_new:
        crawl.add_seeds(Outlinks(["http://0.test/"], [""], np.zeros((1, 3), np.float32)))
    return crawl


def html_of(row):
    """Return a page with two blocks of links: dishes, which are relevant, and engines."""
    blocks = (
        ("recipes", "dishes", "soup", "tomato soup", "ladle"),
        ("repairs", "sidebar", "cars", "diesel engine", "wrench"),
    )
    return "<title>index of links</title>" + "".join(
        BLOCK.format(
            heading=heading,
            style=style,
            items="".join(
                ITEM.format(word=word, host=i, number=f"{row}-{i}", anchor=anchor, around=around)
                for i in range(3)
            ),
        )
        for heading, style, word, anchor, around in blocks
    )


def outlinks_of(crawl, words, row, html=html_of):
    """Return the links of a page as the judge's process tells them, with their names."""
    page = read_page(html(row), crawl.store.url(row), places=True, language=False)
    cues = page_codes(page, 0.5, KeywordSet(["recipes"]), words)
    crawl.store.names.learn(words.new)
    urls, anchors = zip(*page.links, strict=True)
    return Outlinks(urls, anchors, np.full((len(urls), 3), 0.5, dtype=np.float32), cues)


def steps(crawl, html=html_of):
    """Run a crawl to its end, one booking at a time; pages of soup are relevant."""
    words = Wordbook()
    while (decision := crawl.next()) is not None:
        relevant = "soup" in crawl.store.url(decision.row)
        links = outlinks_of(crawl, words, decision.row, html)
        yield crawl.book(decision.row, judged(relevant), links)


def record(path, crawl, html=html_of):
    """Record a crawl to its end; return its bookings."""
    writer, bookings = Writer.open(path, crawl, META, {}, 100.0), []
    for number, booking in enumerate(steps(crawl, html)):
        bookings.append(booking)
        writer.note(told(booking, "a page"), 100.0 + number)
        if number % 10 == 0:
            writer.flush(100.0 + number)
    writer.close(500.0, "page_limit")
    return bookings
