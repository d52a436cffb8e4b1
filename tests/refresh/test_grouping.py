import numpy as np

from tres_scrapy.refresh.page_table import PageTable, group_name, kind_name, number


def test_group_is_host_and_folder():
    names = [
        group_name(url)
        for url in (
            "http://a.test/news/one.html",
            "http://a.test/news/2024/two.html",
            "http://a.test/2024/three",
            "http://a.test/four.html",
            "http://a.test/",
        )
    ]
    assert names == ["a.test/news", "a.test/news", "a.test/#", "a.test/", "a.test/"]
    assert kind_name("http://b.test/news/x") == "news"


def test_names_are_numbered():
    assert number(["b", "a", "b"]).tolist() == [1, 0, 1]


def test_visit_books_its_gap():
    pages = PageTable(np.ones(2), (np.zeros(2, int),))
    pages.see(0, True, 3.0)
    pages.see(0, False, 5.0)
    pages.see(0, None, 9.0)
    assert (pages.changes[0], pages.changed_time[0], pages.quiet_time[0]) == (1, 3, 2)
    assert pages.fetched.tolist() == [9, 0]


def test_backward_clock_is_no_observation():
    pages = PageTable(np.ones(1), (np.zeros(1, int),))
    pages.see(0, True, 5.0)
    pages.see(0, True, 4.0)
    assert (pages.changes[0], pages.changed_time[0]) == (1, 5)
