"""`scrapy crawl tres`, run as a user runs it."""

import json
import re
import signal
import subprocess
from collections import Counter
from urllib.parse import urlsplit

import pytest
from conftest import PROJECT, running

from tres_scrapy.topic.pack import Pack

FOOD = (
    "<title>{0} soup recipe</title><p>A recipe for soup with {0}: chop the onions, simmer the "
    "vegetables in butter, add cream, cheese and pepper, bake the bread, serve the dish hot with "
    "wine. Ingredients: flour, sugar, garlic, olive oil, tomatoes, chicken, salt.</p>"
)
OTHER = (
    "<title>{0} election</title><p>The parliament voted on {0}: ministers and the opposition "
    "debated the budget, the court heard the case, and troops left the border.</p>"
)


FRENCH = (
    "<title>La soupe</title><p>Émincez les oignons, faites-les revenir dans le beurre, ajoutez la "
    "crème et le poivre, puis servez la soupe bien chaude avec du pain et un verre de vin.</p>"
)


def link(*urls):
    return "".join(f'<p><a href="{url}">page {i}</a></p>' for i, url in enumerate(urls))


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def crawl(scrapy, tmp_path, *arguments, **options):
    """Run the spider without delay; return the process and the lines of its JSONL file."""
    output = tmp_path / "pages.jsonl"
    process = scrapy(
        *("crawl", "tres", "-a", "topic=food", "-a", f"output={output}"),
        *("-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0", *arguments),
        **options,
    )
    return process, lines_of(output) if output.exists() else []


def counted(process):
    """The server's own count: pages, relevant, harvest rate, relevant domains."""
    pattern = r"own count: (\d+) pages, (\d+) relevant, harvest rate ([\d.]+), (\d+) relevant"
    return [float(figure) for figure in re.search(pattern, process.stderr).groups()]


def test_embedded_web_from_one_seed_to_jsonl(scrapy, tmp_path):
    log = tmp_path / "web.jsonl"
    process, items = crawl(
        scrapy, tmp_path, "-a", "pages=60", "-s", "TRES_WEB=synthetic", "-s", f"TRES_WEB_LOG={log}"
    )
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    pages, relevant, harvest, _ = counted(process)
    assert pages == 60
    assert harvest == pytest.approx(relevant / pages, abs=1e-3)
    truth = {line["url"]: line["relevant"] for line in lines_of(log)}
    assert items
    for item in items:
        assert item["final_url"] in truth
        assert item["probability"] >= Pack.load(PROJECT / "models" / "food").threshold
        assert item["depth"] == len(item["path"]) - 1
        assert item["path"][-1] == item["final_url"]
        assert item["status"] == 200


def test_concurrency_one_and_the_same_seed_give_the_same_list_of_urls(scrapy, tmp_path):
    orders = []
    for run in range(2):
        log = tmp_path / f"{run}.jsonl"
        process, _ = crawl(
            scrapy,
            tmp_path,
            *("-a", "pages=150", "-a", "random_seed=5", "-s", "TRES_WEB=synthetic"),
            *("-s", f"TRES_WEB_LOG={log}", "-s", "CONCURRENT_REQUESTS=1"),
        )
        assert process.returncode == 0, process.stderr
        orders.append([line["url"] for line in lines_of(log)])
    assert orders[0] == orders[1]
    assert len(orders[0]) > 150


def test_item_tells_where_a_page_came_from(scrapy, tmp_path, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("http://a.test/old"))
    pages.add("http://a.test/old", status=302, Location="http://b.test/new")
    pages.add("http://b.test/new", FOOD.format("pea"))
    process, items = crawl(scrapy, tmp_path, "-a", "seed=http://a.test/", pages=pages)
    assert process.returncode == 0, process.stderr
    seed, page = items
    unknown = dict.fromkeys(("probability", "text", "fetched_at", "leaf"))
    assert page | unknown == {
        "url": "http://a.test/old",
        "final_url": "http://b.test/new",
        "title": "pea soup recipe",
        "text": None,
        "language": "en",
        "probability": None,
        "depth": 1,
        "path": ["http://a.test/", "http://b.test/new"],
        "anchor": "page 0",
        "q_value": None,
        "leaf": None,
        "fetched_at": None,
        "status": 200,
        "why": "Exploration: a random link of a random leaf. "
        "Leaf: any link (the tree has not split).",
        "domain": "b.test",
        "new": True,
        "new_domain": True,
        "rendered": False,
    }
    assert "onions" in page["text"]
    assert (seed["path"], seed["why"]) == (["http://a.test/"], "Seed.")


def test_pages_in_another_language_are_said_to_be(scrapy, tmp_path, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("/2"))
    pages.add("http://a.test/2", FRENCH)
    process, _ = crawl(scrapy, tmp_path, "-a", "seed=http://a.test/", pages=pages)
    assert "'tres/foreign/fr': 1" in process.stderr
    assert "1 pages are in a language that the pack does not read (fr 1)" in process.stderr


def test_robots_rules_hold_for_every_request_that_waits_for_them(scrapy, tmp_path, pages):
    """Scrapy 2.19 tells them to one of the requests that wait and lets the others go."""
    urls = [f"http://b.test/private/{i}" for i in range(12)]
    pages.add("http://a.test/", FOOD.format("leek") + link(*urls))
    pages.add("http://b.test/robots.txt", "User-agent: *\nDisallow: /private")
    for url in urls:
        pages.add(url, FOOD.format(url))
    process, _ = crawl(
        scrapy,
        tmp_path,
        *("-a", "seed=http://a.test/", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=16"),
        pages=pages,
    )
    assert process.returncode == 0, process.stderr
    assert pages.fetched() == ["http://a.test/"]


def test_running_out_of_links_ends_the_crawl_and_says_so(scrapy, tmp_path, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("/dead", "http://a.test/2"))
    pages.add("http://a.test/2", OTHER.format("tax") + link("http://a.test/"))
    process, items = crawl(scrapy, tmp_path, "-a", "seed=http://a.test/", pages=pages)
    assert process.returncode == 0
    assert "Ran out of links after 2 pages" in process.stderr
    assert "'finish_reason': 'frontier_exhausted'" in process.stderr
    assert "'tres/failures/http_404': 1" in process.stderr
    assert [item["url"] for item in items] == ["http://a.test/"]
    assert sorted(pages.fetched()) == ["http://a.test/", "http://a.test/2", "http://a.test/dead"]


def test_max_per_domain_counts_fetched_pages(scrapy, tmp_path, pages):
    urls = [f"http://www.a.test/{i}" for i in range(6)] + [f"http://b.test/{i}" for i in range(6)]
    pages.add("http://seed.test/", FOOD.format("leek") + link(*urls))
    for i, url in enumerate(urls):
        pages.add(url, FOOD.format(url), status=500 if i == 0 else 200)
    process, _ = crawl(
        scrapy, tmp_path, "-a", "seed=http://seed.test/", "-a", "max_per_domain=2", pages=pages
    )
    good = Counter(urlsplit(url).hostname for url in pages.fetched() if url != urls[0])
    assert process.returncode == 0, process.stderr
    assert good == {"seed.test": 1, "www.a.test": 2, "b.test": 2}


def test_every_kind_of_failure_is_an_experience_and_no_page(scrapy, tmp_path, pages):
    kinds = {
        "missing": {"status": 404},
        "error": {"status": 503},
        "picture": {"Content_Type": "image/png"},
        "soft": {"html": "<title>Page not found</title><p>Sorry.</p>"},
        "loop": {"status": 302, "Location": "http://a.test/pool"},
        "forbidden": {"html": FOOD.format("leek")},
    }
    pages.add("http://a.test/", FOOD.format("leek") + link(*(f"/{kind}" for kind in kinds)))
    pages.add("http://a.test/robots.txt", "User-agent: *\nDisallow: /forbidden")
    pages.add("http://a.test/pool", status=302, Location="http://a.test/loop")
    for kind, answer in kinds.items():
        pages.add(f"http://a.test/{kind}", **answer)
    process, items = crawl(scrapy, tmp_path, "-a", "seed=http://a.test/", pages=pages)
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    assert [item["url"] for item in items] == ["http://a.test/"]
    assert "'tres/pages': 1" in process.stderr
    for name in (
        "http_404",
        "http_503",
        "not_html",
        "soft_404",
        "redirect_closed",
        "robots",
    ):
        assert f"'tres/failures/{name}': 1" in process.stderr


def test_same_text_at_another_url_is_harvested_once(scrapy, tmp_path, pages):
    copies = [f"http://a.test/?sid={i}" for i in range(3)]
    pages.add("http://a.test/", FOOD.format("leek") + link(*copies))
    for url in copies:
        pages.add(url, FOOD.format("pea"))
    process, items = crawl(scrapy, tmp_path, "-a", "seed=http://a.test/", pages=pages)
    assert [item["title"] for item in items] == ["leek soup recipe", "pea soup recipe"]
    assert "'tres/duplicates': 2" in process.stderr
    assert "'tres/relevant_pages': 2" in process.stderr


def test_jsonl_stands_beside_scrapys_own_feeds(scrapy, tmp_path, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("/2"))
    pages.add("http://a.test/2", FOOD.format("pea"))
    feed = tmp_path / "feed.jsonl"
    _, items = crawl(
        scrapy, tmp_path, "-a", "seed=http://a.test/", "-O", f"{feed}:jsonlines", pages=pages
    )
    assert lines_of(feed) == items
    assert len(items) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-a", "topic=fod"], "unknown topic 'fod'"),
        (["-a", "topic=../food"], "TRES_TOPIC (-a topic=) '../food': must be letters"),
        (["-a", "seed=ftp://me:pw@a.test/"], "TRES_SEED (-a seed=) 'ftp://a.test/': must"),
        (["-a", "sed=http://a.test/"], "unknown argument -a sed; did you mean seed?"),
        (["-s", "TRES_GAMA=1"], "unknown setting TRES_GAMA; did you mean TRES_GAMMA?"),
        (["-a", "max_per_domain=2_5"], "TRES_MAX_PER_DOMAIN (-a max_per_domain=) '2_5': must"),
        (["-a", "seed=@nowhere.txt"], "cannot be read"),
        (["-a", "output=/proc/nowhere/x.jsonl"], "TRES_OUTPUT (-a output=) cannot be written"),
    ],
)
def test_bad_input_is_one_clear_line(scrapy, arguments, complaint):
    process = scrapy(
        *("crawl", "tres", "-a", "topic=food", "-a", "seed=http://a.test/", *arguments, "--nolog")
    )
    assert process.returncode != 0
    assert complaint in process.stderr
    assert process.stderr.count("\n") == 1


def test_unreadable_pack_is_one_clear_line(scrapy, tmp_path):
    pack = tmp_path / "food"
    pack.mkdir()
    (pack / "topic.toml").write_text("name = [", encoding="utf-8")
    arguments = ("-a", "topic=food", "-a", "seed=http://a.test/", "-a", f"models={tmp_path}")
    process = scrapy("crawl", "tres", *arguments, "--nolog")
    assert process.returncode != 0
    assert process.stderr.startswith("scrapy crawl tres: topic pack 'food': ")
    assert process.stderr.count("\n") == 1


def test_port_in_use_is_one_clear_line(scrapy, pages):
    arguments = ("-s", "TRES_WEB=synthetic", "-s", f"TRES_WEB_PORT={pages.port}")
    process = scrapy("crawl", "tres", "-a", "topic=food", *arguments, "--nolog")
    assert process.returncode != 0
    assert "in use" in process.stderr
    assert str(pages.port) in process.stderr
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize("seed", ["http://a.test/missing", "http://no-such-host.invalid/"])
def test_seed_without_a_page_fails_with_one_clear_line(scrapy, tmp_path, pages, seed):
    served = pages if "a.test" in seed else None
    process, items = crawl(scrapy, tmp_path, "-a", f"seed={seed}", pages=served)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "No seed brought a page" in process.stderr
    assert not items
    assert not (tmp_path / "pages.jsonl").exists()


def test_ctrl_c_once_saves_and_reports(tmp_path):
    output = tmp_path / "pages.jsonl"
    arguments = ("-a", "topic=food", "-a", f"output={output}", "-s", "TRES_WEB=synthetic")
    arguments += ("-s", "TRES_PROGRESS_INTERVAL=0.5")
    seen = []
    with running("crawl", "tres", *arguments, stderr=subprocess.PIPE) as process:
        for line in process.stderr:
            seen.append(line)
            if " pages, harvest rate" in line and not line.split("INFO: ")[1].startswith("0 pages"):
                process.send_signal(signal.SIGINT)
                break
        seen.append(process.communicate(timeout=300)[1])
    log = "".join(seen)
    assert process.returncode == 0, log
    assert "'finish_reason': 'shutdown'" in log
    assert "The web's own count" in log
    assert "Traceback" not in log
    if output.exists():
        assert all(item["final_url"] for item in lines_of(output))


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("oracle", "it reads the labels of an offline web: add -a web=synthetic"),
        ("seedfinder", "set TRES_SEARCH_URL"),
        ("ache", "judges pages by the pack 'food-svm', which is not in models/"),
    ],
)
def test_policy_that_lacks_something_says_so_in_one_line(scrapy, tmp_path, policy, reason):
    models = tmp_path / "models"
    models.mkdir()
    packs = ["food", "vectors"] + ["food-svm"] * (policy == "seedfinder")
    for pack in packs:
        (models / pack).symlink_to(PROJECT / "models" / pack)
    process, items = crawl(
        *(scrapy, tmp_path, "-a", f"policy={policy}", "-a", f"models={models}"),
        *("-a", "seed=http://a.test/", "-s", "LOG_ENABLED=False"),
    )
    assert process.returncode == 1
    assert not items
    assert process.stderr.startswith("scrapy crawl tres: ")
    assert reason in process.stderr
    assert process.stderr.count("\n") == 1
