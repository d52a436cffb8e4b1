"""The limits of the frontier, reached by a crawl as a user runs it."""

from urllib.parse import urlsplit

from soup import FOOD


def test_limits_hold_in_a_crawl(crawl, pages):
    links = ["http://b.test/", *(f"http://dead.test/{i}" for i in range(10))]
    pages.add("http://a.test/", FOOD.format("leek") + "".join(f"<a href={u}>x</a>" for u in links))
    pages.add("http://b.test/", FOOD.format("pea"))
    for url in links[1:]:
        pages.add(url, status=403)
    process, _ = crawl(
        *("-a", "seed=http://a.test/", "-a", "max_frontier=9", "-a", "max_failures=3"),
        *("-s", "CONCURRENT_REQUESTS=1"),
        pages=pages,
    )
    assert process.returncode == 0, process.stderr
    hosts = [urlsplit(url).hostname for url in pages.fetched()]
    assert (hosts.count("b.test"), hosts.count("dead.test")) == (1, 3)
    assert process.stats["tres/links_left_out"] == 2
    assert process.stats["tres/domains_given_up"] == 1
