from test_crawl import A, book, crawl_of

from tres_scrapy.crawl.scout import FIRST, Scout

LINKS = [f"http://s{n}.test/" for n in range(50)]
CHAIN = [f"http://c{n}.test/" for n in range(50)]


def fetched():
    """The first pages of a crawl whose policy follows a chain away from the seed."""
    crawl = crawl_of(A)
    crawl.scout = Scout(crawl.store)
    book(crawl, crawl.next().row, 1.0, CHAIN[0], *LINKS)
    crawl.policy.rows = crawl.policy.rows[:1]
    urls = []
    for step in range(FIRST + 6):
        row = crawl.next().row
        urls.append(crawl.store.url(row))
        book(crawl, row, 0.0, *CHAIN[step + 1 : step + 2])
    return urls


def test_every_second_of_the_first_pages_is_a_link_of_the_seed():
    urls = fetched()
    assert [url in LINKS for url in urls] == [True, False] * (FIRST // 2) + [False] * 6
    assert fetched() == urls


def test_one_random_link_is_taken_a_page():
    crawl = crawl_of(A)
    scout = crawl.scout = Scout(crawl.store)
    book(crawl, crawl.next().row, 1.0, *LINKS)
    assert [len(scout.take(crawl.pages)) for _ in range(3)] == [1, 0, 0]
