"""Who gave most of the last pages of a crawl."""

import pytest
from farmed_run import STALE, crawl_of, farmed, hidden_farm, honest, one_site, repeating, steps

from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.share import BODY, CAP, DOUBTFUL, HUB, LEAST, SCOPE, SEED, SMALL, Shares


def shares_of(crawl, links, **says):
    for _ in steps(crawl, links, **says):
        pass
    return Shares(crawl)


def test_no_site_of_an_honest_web_holds_the_crawl():
    shares = shares_of(crawl_of(300), honest)
    assert shares.holder is None
    doors = shares.doors()
    assert len(doors) > 30
    assert sum(is_linked for _, is_linked in doors.values()) > 0.9 * len(doors)


@pytest.mark.parametrize("cap", [None, Cap(5, 5)])
def test_farm_of_many_sites_is_one_body(cap):
    shares = shares_of(crawl_of(600, cap), farmed)
    holder = shares.holder
    assert (holder.site, holder.of, holder.linkers, holder.reason) == ("farm.test", 500, 1, "")
    assert holder.pages > 500 / 3
    doors = shares.doors()
    farm = [site for site in doors if site.startswith("farm")]
    assert holder.sites == len(farm) > 50
    assert {doors[site] for site in farm} == {("farm.test", False)}


def test_nothing_is_said_of_few_pages():
    assert shares_of(crawl_of(LEAST - 1), one_site).holder is None
    assert shares_of(crawl_of(LEAST), one_site).holder is not None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, HUB),
        ({"cap": Cap(1000, 1000)}, CAP),
        ({"allowed_domains": ("large.test", "honest1.test")}, SCOPE),
    ],
)
def test_large_site_is_named(options, reason):
    holder = shares_of(crawl_of(400, **options), one_site).holder
    assert (holder.site, holder.sites, holder.reason) == ("large.test", 1, reason)
    assert holder.pages > holder.of / 3


def test_site_of_the_seed_may_give_most_pages():
    def links(url, random):
        return [f"http://honest0.test/{random.integers(10**9)}" for _ in "12"]

    holder = shares_of(crawl_of(300), links).holder
    assert (holder.site, holder.reason) == ("honest0.test", SEED)


def test_only_site_that_the_seed_links_to_counts_as_a_seed():
    """A portal through which the whole web is found is no farm."""

    def links(url, random):
        return ["http://portal.test/"] if url == "http://honest0.test/" else honest(url, random)

    assert shares_of(crawl_of(400), links).holder is None


def test_hub_to_which_many_sites_link_is_no_farm():
    def links(url, random):
        if "hub" in url or "only" in url:
            number = random.integers(10**9)
            return [f"http://hub.test/{number}", *(f"http://only{number}{n}.test/" for n in "abc")]
        return ["http://hub.test/", *honest(url, random)]

    holder = shares_of(crawl_of(400, Cap(9, 9)), links).holder
    assert (holder.site, holder.reason) == ("hub.test", HUB)
    assert holder.sites > 50


def test_large_site_with_few_links_is_a_surprise():
    def links(url, random):
        if "large" in url:
            return [f"http://large.test/{n}" for n in random.integers(10**9, size=5)]
        return honest(url, random)[:1] + ["http://large.test/"] * url.startswith("http://honest3.")

    holder = shares_of(crawl_of(400), links).holder
    assert (holder.site, holder.sites, holder.linkers, holder.reason) == ("large.test", 1, 1, "")


def test_long_chain_of_sites_is_one_body():
    def links(url, random):
        number = int(url.partition("chain")[2].partition(".")[0] or 0)
        return [f"http://chain{number + 1}.test/"] if number < 100 else [url + "x" for _ in "1"]

    holder = shares_of(crawl_of(600), links).holder
    assert (holder.site, holder.sites) == ("chain100.test", 1)
    holder = shares_of(crawl_of(600, Cap(5, 5)), honest_chain).holder
    assert holder.sites > 90


def honest_chain(url, random):
    """Return links to the next site of a chain, which begins at one honest site."""
    number = int(url.partition("chain")[2].partition(".")[0] or 0)
    if "chain" in url:
        return [f"http://chain{number + 1}.test/{page}" for page in "ab"]
    return ["http://chain0.test/"] if url.startswith("http://honest3.") else honest(url, random)


def small_farms(url, random):
    """Return the links of a web in which each honest page leads to another small farm."""
    if "farm" in url:
        return [url + "/more"] * (random.random() < 0.5)
    return [*honest(url, random), f"http://farm{random.integers(10**9)}.test/"]


def test_judge_and_trust_disagree_about_a_farm_that_repeats_itself():
    holder = shares_of(crawl_of(600, Cap(9, 9)), hidden_farm, known=repeating).holder
    assert (holder.site, holder.reason, holder.doubt) == ("farm.test", "", BODY)
    assert holder.sites > 50


def test_judge_and_trust_disagree_about_many_small_farms():
    holder = shares_of(crawl_of(300), small_farms, known=repeating).holder
    assert (holder.reason, holder.doubt) == ("", SMALL)
    assert holder.site.startswith("farm")
    assert holder.sites > 50
    assert holder.pages > DOUBTFUL * holder.of


@pytest.mark.parametrize("cap", [None, Cap(9, 9)])
@pytest.mark.parametrize("links", [honest, one_site])
def test_sites_that_others_link_to_may_repeat_themselves(links, cap):
    holder = shares_of(crawl_of(400, cap), links, known=lambda _: STALE).holder
    assert holder is None or not holder.doubt


@pytest.mark.parametrize("links", [hidden_farm, small_farms])
def test_farm_that_the_judge_does_not_like_is_no_doubt(links):
    crawl = crawl_of(600, Cap(9, 9))
    for booking in steps(crawl, links, known=repeating):
        crawl.store.ledger.said.relevant[crawl.store["domain"][booking.decision.row]] = 0
    holder = Shares(crawl).holder
    assert holder is None or not holder.doubt


@pytest.mark.parametrize(
    "options",
    [{"allowed_domains": ("honest0.test", "large.test")}, {"cap": Cap(999, 999)}],
)
def test_site_that_the_user_asked_for_is_no_doubt(options):
    def links(url, random):
        return [f"http://large.test/{random.integers(10**9)}" for _ in "12"] + [
            "http://honest0.test/"
        ]

    holder = shares_of(crawl_of(300, **options), links, known=lambda _: STALE).holder
    assert not holder.doubt
