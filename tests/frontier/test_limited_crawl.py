"""The limits of the frontier, met by a crawl as a user runs it."""

from urllib.parse import urlsplit

PROSE = "<title>{0} soup</title><p>A recipe for soup with {0}: chop onions, simmer, serve hot.</p>"


def test_a_crawl_leaves_out_what_does_not_fit_and_gives_up_dead_domains(scrapy, tmp_path, pages):
    links = ["http://b.test/", *(f"http://dead.test/{i}" for i in range(10))]
    pages.add("http://a.test/", PROSE.format("leek") + "".join(f"<a href={u}>x</a>" for u in links))
    pages.add("http://b.test/", PROSE.format("pea"))
    process = scrapy(
        *("crawl", "tres", "-a", "topic=food", "-a", "seed=http://a.test/"),
        *("-a", f"output={tmp_path}/pages.jsonl", "-a", "max_frontier=9", "-a", "max_failures=3"),
        *("-s", "DOWNLOAD_DELAY=0", "-s", "CONCURRENT_REQUESTS=1"),
        pages=pages,
    )
    assert process.returncode == 0, process.stderr
    hosts = [urlsplit(url).hostname for url in pages.fetched()]
    assert (hosts.count("b.test"), hosts.count("dead.test")) == (1, 3)
    assert process.stats["tres/links_left_out"] == 2
    assert process.stats["tres/domains_given_up"] == 1
