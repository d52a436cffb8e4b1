import numpy as np

from tres_scrapy.refresh.page_table import arms_of, group_name, kind_name, number


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


def test_few_groups_are_arms():
    groups = np.array([0, 1, 1])
    assert arms_of(groups, np.ones(3), np.ones(3)) is groups


def test_small_groups_merge_by_rate():
    random = np.random.default_rng(0)
    groups = random.permutation(np.repeat(np.arange(300), 4))
    rates = (10.0 ** np.linspace(-3, 1, 300))[groups]
    arms = arms_of(groups, rates, np.ones(1200), most=10)
    assert np.bincount(arms).tolist() == [120] * 10
    highest = [rates[arms == arm].max() for arm in range(10)]
    lowest = [rates[arms == arm].min() for arm in range(10)]
    assert all(high <= low for high, low in zip(highest, lowest[1:], strict=False))
    assert all(len(set(arms[groups == group])) == 1 for group in range(300))
