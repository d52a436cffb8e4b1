from __future__ import annotations

import gzip
import json
from itertools import pairwise
from types import SimpleNamespace

import pytest
from archived import HTML, answered
from soup import FOOD, OTHER, link

from tres_scrapy.export.warc import exchange_records

HUB = "http://hub.test/a-long-list-of-the-best-recipes/of/many/kitchens/by/their/cooks.html"
POOR, DEAD = "http://poor.test/", "http://dead.test/"
FORBIDDEN, SLOW = "http://forbidden.test/", "http://slow.test/"
VEGETABLES = ("leek", "pea", "bean", "onion", "carrot", "potato")


def recording(path):
    """Record a hub, a page of another topic, a dead page, a forbidden one and a slow host."""
    soups = "".join(f'<p><a href="http://{v}.test/">soup with {v}</a></p>' for v in VEGETABLES)
    pages = {f"http://{v}.test/": FOOD.format(v) for v in VEGETABLES} | {
        HUB: FOOD.format("leek") + soups,
        POOR: OTHER.format("tax") + link("/1", "/2", "http://news.test/"),
        f"{POOR}1": OTHER.format("war"),
        FORBIDDEN: FOOD.format("pea"),
        SLOW: FOOD.format("bean"),
    }
    robots = {
        FORBIDDEN: b"User-agent: *\nDisallow: /",
        SLOW: b"User-agent: *\nCrawl-delay: 120",
        "http://hub.test/": b"User-agent: *\nCrawl-delay: 0.1",
    }
    exchanges = [answered(url, html.encode()) for url, html in pages.items()]
    exchanges += [answered(f"{url}robots.txt", body, headers=[]) for url, body in robots.items()]
    exchanges.append(answered(DEAD, b"gone", 410, HTML))
    records = [part for each in exchanges for part in exchange_records(each)]
    path.write_bytes(b"".join(map(gzip.compress, records)))
    return path


@pytest.fixture(scope="module")
def rated(tres, tmp_path_factory):
    """Rate seeds of a recorded web, as a table and as JSON."""
    folder = tmp_path_factory.mktemp("seeds")
    web = ("--web", "recorded", "--web-data", recording(folder / "web.warc.gz"))
    (folder / "list.txt").write_text(f"{DEAD}\n{POOR}\n")
    seeds = (f"@{folder / 'list.txt'}", FORBIDDEN, SLOW, HUB)
    table = tres("seeds", "food", *seeds, *web)
    lines = tres("seeds", "food", *seeds, *web, "--links", "2", "--json")
    found = [json.loads(line) for line in lines.stdout.splitlines()]
    return SimpleNamespace(table=table, found={each["url"]: each for each in found}, web=web)


def test_good_hub_comes_first(rated):
    assert rated.table.returncode == 0, rated.table.stderr
    head, *rows = rated.table.stdout.splitlines()
    assert head.split() == [
        *("seed", "P", "links", "likely", "sample", "sites", "language", "robots.txt")
    ]
    assert max(map(len, rows[:5])) <= 100
    taken, where, p, links, _, sample, sites, language, robots = rows[0].split(maxsplit=8)
    assert (taken, where[:16], where[-10:]) == ("take", "hub.test/a-long-", "cooks.html")
    assert (links, sample, sites, language) == ("6", "5/5", "6", "en")
    assert float(p) > 0.5
    assert robots == "allowed, 0.1 s"
    assert rows[1].split()[0] == "poor.test"
    assert f"Next: tres crawl food --web recorded --web-data {rated.web[-1]} {HUB}\n" in (
        rated.table.stdout
    )


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("poor.test", "0 likely links; 0 of 1 sampled are on topic"),
        ("dead.test", "HTTP 410"),
        ("forbidden.test", "robots.txt forbids it"),
        ("slow.test", "robots.txt asks for 120 s between fetches; -s TRES_MAX_CRAWL_DELAY=120"),
    ],
)
def test_each_bad_seed_has_its_reason(rated, where, why):
    _, _, left = rated.table.stdout.partition("Leave:\n")
    (line,) = (line for line in left.splitlines() if line.split()[:1] == [where])
    assert why in line
    assert rated.table.stderr.count(f"http://{where}/") == 1


def test_programs_get_all_figures(rated):
    assert [url for url, each in rated.found.items() if each["take"]] == [HUB]
    hub = rated.found[HUB]
    assert (hub["fetched"], hub["on_topic"], hub["crawl_delay"]) == (2, 2, 0.1)
    assert len(hub["sample"]) == 2
    assert rated.found[FORBIDDEN]["robots"] == "forbidden"
    assert rated.found[DEAD]["error"] == "HTTP 410"


@pytest.mark.long
def test_keywords_rate_seeds_too(tres, rated, tmp_path):
    (tmp_path / "soup.txt").write_text("soup\nrecipe\nonions\nbutter\ncheese\n")
    words = ("--keywords", tmp_path / "soup.txt")
    done = tres("seeds", *words, HUB, POOR, *rated.web, project=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert rows[1].startswith("take hub.test")
    assert not rows[2].startswith("take")
    assert f"Next: tres crawl --keywords {words[1]} --web" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"soup.txt"}


def test_seeds_are_fetched_politely(tres, pages):
    pages.add(
        "http://a.test/", FOOD.format("leek") + link("/1", "/2", "/private", "http://127.0.0.1/")
    )
    for path in ("1", "2", "private"):
        pages.add(f"http://a.test/{path}", FOOD.format("pea"))
    pages.add("http://a.test/robots.txt", "User-agent: *\nCrawl-delay: 0.5\nDisallow: /private")
    fast = ("-s", "DOWNLOAD_DELAY=0", "-s", "AUTOTHROTTLE_START_DELAY=0")
    done = tres("seeds", "food", "http://a.test/", *fast, pages=pages)
    assert done.returncode == 0, done.stderr
    assert sorted(pages.fetched()) == [f"http://a.test/{path}" for path in ("", "1", "2")]
    times = [time for time, url in pages.requests if not url.endswith("/robots.txt")]
    assert min(b - a for a, b in pairwise(times)) > 0.4
    assert "allowed, 0.5 s" in done.stdout
    assert "2/2" in done.stdout


def test_status_is_1_without_a_page(tres, pages):
    done = tres("seeds", "food", "http://gone.test/", "http://localhost/", pages=pages)
    assert done.returncode == 1
    assert "Take none of these:" in done.stdout
    assert "HTTP 404" in done.stdout
    assert "localhost is not on the public internet" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("food",), "tres seeds: no seed: write URLs after the topic, or @FILE"),
        (("food", "tea"), "'tea' is not one"),
        (("fod", "http://a.test/"), "unknown topic 'fod'; did you mean food?"),
        (
            ("food", "http://a.test/", "--links", "-1"),
            "invalid value for '--links': -1 is not in the range x>=0",
        ),
    ],
)
def test_wrong_line_is_refused(tres, arguments, complaint):
    done = tres("seeds", *arguments)
    assert done.returncode != 0
    assert complaint in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
