from math import sqrt

import numpy as np
import pytest
from judged import judged
from rivals.inputs import KeywordInputs
from rivals.shark_search import Query, SharkSearchPolicy

from tres_scrapy.agent.policy import NO_TEXT, PageText
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.url.message import TresError


def start(keywords=("bread",)):
    """Lease the seed of a crawl; return crawl and row."""
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, SharkSearchPolicy(store, KeywordInputs(keywords=keywords)))
    crawl.add_seeds(Outlinks(["http://seed.test/"], [""], np.zeros((1, 3), dtype="f4")))
    return crawl, crawl.next().row


def book(crawl, row, anchors, page=NO_TEXT):
    """Book a page with one link per anchor text."""
    urls = [f"http://{i}.test/{row}" for i in range(len(anchors))]
    actions = np.zeros((len(anchors), 3), dtype="f4")
    return crawl.book(row, judged(0.0, page), Outlinks(urls, anchors, actions)).outlinks


def test_similarity_is_a_cosine():
    query = Query(["bread", "white flour"])
    assert query.similarity("Flour, and the bread and the breads") == pytest.approx(
        (1 + 2) / (sqrt(1 + 4) * sqrt(3))
    )
    assert query.similarity("bread flour white") == pytest.approx(1)
    assert query.similarity("cheese") == query.similarity("") == 0


def test_scores_match_hand_computation():
    crawl, seed = start(keywords=("bread", "flour"))
    page = PageText("bread", {f"http://1.test/{seed}": "flour and milk"})
    rows = book(crawl, seed, ["flour bread", "next", "last"], page)
    inherited = 0.5 * 1 / sqrt(2)
    near = [0.8 * 1 + 0.2 * 1, 0.2 * 0.5, 0]
    scores = [0.5 * inherited + 0.5 * each for each in near]
    assert [crawl.next().row for _ in rows] == rows.tolist()
    np.testing.assert_allclose(crawl.policy.values(rows, page), scores)


def test_inheritance_fades_behind_irrelevant_pages():
    crawl, seed = start()
    row, scores = seed, []
    for text in ("bread", "cheese", "cheese", "bread"):
        (row,) = book(crawl, row, ["next"], PageText(text))
        scores.append(float(crawl.policy.values(np.array([row]), NO_TEXT)[0]))
        assert crawl.next().row == row
    assert scores == [0.25, 0.125, 0.0625, 0.25]


def test_links_of_an_irrelevant_seed_inherit_nothing():
    crawl, seed = start()
    rows = book(crawl, seed, ["next", "bread"], PageText("cheese"))
    assert crawl.policy.values(rows, NO_TEXT).tolist() == [0, 0.5]


def test_readmitted_links_keep_what_they_inherited():
    crawl, seed = start()
    rows = book(crawl, seed, ["next", "bread"], PageText("bread"))
    taken = [crawl.next().row for _ in rows]
    crawl.policy.readmit(rows)
    assert [crawl.policy.queue.pop() for _ in rows] == [None, None], "they are being fetched"
    for row in taken:
        crawl.store.release(row)
    crawl.policy.readmit(rows)
    assert [crawl.next().row for _ in rows] == taken == [rows[1], rows[0]]


def test_no_keywords_are_refused():
    with pytest.raises(TresError, match="'shark_search' needs keywords"):
        start(keywords=())
