"""`scrapy crawl tres`, run as a user runs it."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from urllib.parse import urlsplit

import pytest
from conftest import PROJECT, running
from fpdf import FPDF
from pyarrow import parquet
from soup import FOOD, FRENCH, OTHER, lines_of, link

from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.topic.pack import Pack


def counted(process):
    """Pages, relevant, harvest rate and relevant domains, by the web's true labels."""
    pattern = r"true labels: (\d+) pages, (\d+) relevant, harvest rate ([\d.]+), (\d+) relevant"
    return [float(figure) for figure in re.search(pattern, process.stderr).groups()]


@pytest.mark.long
def test_embedded_web_fills_jsonl(crawl, tmp_path):
    log = tmp_path / "web.jsonl"
    process, items = crawl(
        "-a", "pages=30", "-s", "TRES_WEB=synthetic", "-s", f"TRES_WEB_LOG={log}"
    )
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    pages, relevant, harvest, _ = counted(process)
    assert pages == 30
    assert harvest == pytest.approx(relevant / pages, abs=1e-3)
    truth = {line["url"]: line["relevant"] for line in lines_of(log)}
    assert items
    for item in items:
        assert item["final_url"] in truth
        assert item["probability"] >= Pack.load(PROJECT / "models" / "food").threshold
        assert item["depth"] == len(item["path"]) - 1
        assert item["path"][-1] == item["final_url"]
        assert item["status"] == 200


@pytest.mark.long
def test_own_judge_decides(crawl):
    judge = ("-a", "judge=examples.recipe_rule:recipe")
    process, items = crawl("-a", "pages=40", "-a", "web=synthetic", *judge)
    assert process.returncode == 0, process.stderr
    assert items
    assert {item["probability"] for item in items} <= {0.5, 2 / 3, 5 / 6, 1.0}


@pytest.mark.long
@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("examples.recipe_rule:soup", "judge 'examples.recipe_rule:soup' failed: AttributeError"),
        ("recipe", "TRES_JUDGE (-a judge=) 'recipe': must be package.module:callable"),
    ],
)
def test_unknown_judge_is_one_line(crawl, judge, said):
    process, items = crawl("-a", "pages=40", "-a", "web=synthetic", "-a", f"judge={judge}")
    assert (process.returncode, items) == (1, [])
    assert said in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.long
def test_failing_judge_is_not_blamed_on_the_seed(crawl, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text("def fail(pages):\n    raise ValueError('no model')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    process, _ = crawl("-a", "web=synthetic", "-a", "judge=own:fail", fresh=True)
    assert process.returncode == 1
    assert "No page could be judged (judge_error): the lines `Could not judge`" in process.stderr
    assert "check the seed" not in process.stderr


@pytest.mark.long
def test_same_seed_same_urls(crawl, tmp_path):
    orders = []
    for run in range(2):
        log = tmp_path / f"{run}.jsonl"
        process, _ = crawl(
            *("-a", "pages=40", "-a", "random_seed=5", "-s", "TRES_WEB=synthetic"),
            *("-s", f"TRES_WEB_LOG={log}", "-s", "CONCURRENT_REQUESTS=1"),
            fresh=run == 1,  # each process with its own hash seed
        )
        assert process.returncode == 0, process.stderr
        orders.append([line["url"] for line in lines_of(log)])
    assert orders[0] == orders[1]
    assert len(orders[0]) > 40


def test_item_has_its_origin(crawl, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("http://a.test/old"))
    pages.add("http://a.test/old", status=302, Location="http://b.test/new")
    pages.add("http://b.test/new", FOOD.format("pea"))
    process, items = crawl("-a", "seed=http://a.test/", pages=pages)
    assert process.returncode == 0, process.stderr
    seed, page = items
    assert [said["signal"] for said in page.pop("rights")] == ["none"]
    unknown = dict.fromkeys(("probability", "text", "fetched_at", "leaf", "q_value", "why"))
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
        "why": None,
        "domain": "b.test",
        "new": True,
        "new_domain": True,
        "rendered": False,
        "content_type": "text/html",
    }
    assert "onions" in page["text"]
    first, said, leaf = page["why"].split(". L")
    assert first == f"Highest Q: {page['q_value']:.2f}, best of 1 link from 1 leaf"
    assert re.fullmatch(r"ink: last results of its host \+\d\.\d, .* \+\d\.\d.*", said)
    assert leaf == "eaf: any link (the tree has not split)."
    assert (seed["path"], seed["why"]) == (["http://a.test/"], "Seed.")


def test_foreign_language_is_reported(crawl, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("/2"))
    pages.add("http://a.test/2", FRENCH)
    process, _ = crawl("-a", "seed=http://a.test/", pages=pages)
    assert process.stats["tres/foreign/fr"] == 1
    assert "Pages in a language that the pack does not support: 1 (fr 1)" in process.stderr


def test_explanation_names_the_refused_language(scrapy, tres, pages, tmp_path):
    pages.add("http://a.test/", FRENCH)
    output = tmp_path / "pages.jsonl"
    arguments = ("-a", "topic=food", "-a", "seed=http://a.test/", "-a", "languages=en")
    process = scrapy("crawl", "tres", *arguments, "-a", f"output={output}", pages=pages)
    assert process.returncode == 0, process.stderr
    explained = tres("explain", str(output.with_suffix(".run")), "http://a.test/")
    assert "; refused by languages: it is in fr" in explained.stdout, explained.stderr


def test_pages_built_by_scripts_are_noticed(crawl, pages):
    pages.add("http://a.test/", "<title>Soup</title><div id=root></div><script src=/a.js></script>")
    process, _ = crawl("-a", "seed=http://a.test/", pages=pages)
    assert "1 of 1 page looks built by scripts: try -a render=auto" in process.stderr


def test_scope_holds_for_links_and_redirects(crawl, pages, tmp_path):
    urls = ("/good", "/deny/1", "http://out.test/", "http://www.out.test/", "/moved")
    pages.add("http://seed.test/", FOOD.format("leek") + link("http://a.test/"))
    pages.add("http://a.test/", FOOD.format("pea") + link(*urls))
    pages.add("http://a.test/good", FOOD.format("kale"))
    pages.add("http://a.test/moved", status=302, Location="http://out.test/x")
    process, items = crawl(
        *("-a", "seed=http://seed.test/", "-a", "allowed_domains=a.test", "-a", "deny=/deny/"),
        pages=pages,
    )
    assert len(items) == 3
    assert not [url for url in pages.fetched() if "deny" in url or "out.test" in url]
    assert process.stats["tres/out_of_scope/deny"] == 1
    assert process.stats["tres/out_of_scope/allowed_domains"] == 2
    assert process.stats["tres/failures/redirect_out_of_scope"] == 1
    assert "by rule: allowed_domains 2, deny 1" in process.stderr
    with Record(tmp_path / "pages.run") as record:
        assert record.refused() == {"allowed_domains": 2, "deny": 1}
        assert "allowed_domains 2, deny 1." in " ".join(render(record).split())
        with pytest.raises(RecordError, match="the scope refuses it by deny: /deny/"):
            FetchExplanation(record, "http://a.test/deny/1")
        with pytest.raises(RecordError, match="refused by the scope: allowed_domains 2, d"):
            FetchExplanation(record, "http://a.test/other")


def test_refusal_is_logged_to_file(scrapy, tmp_path):
    log = tmp_path / "log"
    process = scrapy(
        "crawl", "tres", "-a", "topic=fod", "-a", "seed=http://a.test/", "-s", f"LOG_FILE={log}"
    )
    assert process.returncode == 1
    assert process.stderr.startswith("scrapy crawl tres: unknown topic 'fod'; ")
    assert process.stderr.strip() in log.read_text()


def test_healthy_crawl_logs_no_error(crawl, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("/down"))
    pages.add("http://a.test/down", status=503)
    process, _ = crawl("-a", "seed=http://a.test/", pages=pages)
    assert process.stats["tres/hosts_given_up"] == 1
    assert "log_count/ERROR" not in process.stats
    assert "Enabled extensions" not in process.stderr
    assert "Spider opened" in process.stderr.splitlines()[0]


def test_robots_rules_hold_for_all(crawl, pages):
    """Scrapy 2.19 applies the rules to one waiting request and lets the others pass."""
    urls = [f"http://b.test/private/{i}" for i in range(12)]
    pages.add("http://a.test/", FOOD.format("leek") + link(*urls))
    pages.add("http://b.test/robots.txt", "User-agent: *\nDisallow: /private")
    for url in urls:
        pages.add(url, FOOD.format(url))
    process, _ = crawl(
        *("-a", "seed=http://a.test/", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=16"),
        pages=pages,
    )
    assert process.returncode == 0, process.stderr
    assert pages.fetched() == ["http://a.test/"]


def test_exhausted_frontier_ends_crawl(crawl, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("/dead", "http://a.test/2"))
    pages.add("http://a.test/2", OTHER.format("tax") + link("http://a.test/"))
    process, items = crawl("-a", "seed=http://a.test/", pages=pages)
    assert process.returncode == 0
    assert "Ran out of links after 2 pages. Links without a page: 1 dead" in process.stderr
    assert process.stats["finish_reason"] == "frontier_exhausted"
    assert process.stats["tres/failures/http_404"] == 1
    assert [item["url"] for item in items] == ["http://a.test/"]
    assert sorted(pages.fetched()) == ["http://a.test/", "http://a.test/2", "http://a.test/dead"]


def test_max_per_domain_counts_fetched_pages(crawl, pages):
    urls = [f"http://www.a.test/{i}" for i in range(6)] + [f"http://b.test/{i}" for i in range(6)]
    pages.add("http://seed.test/", FOOD.format("leek") + link(*urls))
    for i, url in enumerate(urls):
        pages.add(url, FOOD.format(url), status=500 if i == 0 else 200)
    process, _ = crawl("-a", "seed=http://seed.test/", "-a", "max_per_domain=2", pages=pages)
    good = Counter(urlsplit(url).hostname for url in pages.fetched() if url != urls[0])
    assert process.returncode == 0, process.stderr
    assert good == {"seed.test": 1, "www.a.test": 2, "b.test": 2}
    assert "Links without a page: 7 beyond max_per_domain" in process.stderr
    assert process.stats["tres/links_refused/max_per_domain"] == 7


def test_failures_are_no_pages(crawl, pages):
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
    process, items = crawl("-a", "seed=http://a.test/", pages=pages)
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    assert [item["url"] for item in items] == ["http://a.test/"]
    assert process.stats["tres/pages"] == 1
    for name in (
        "http_404",
        "not_html",
        "soft_404",
        "redirect_closed",
        "robots",
    ):
        assert process.stats[f"tres/failures/{name}"] == 1
    assert process.stats["tres/postponed/http_503"] >= 1


@pytest.mark.parametrize(("documents", "kind"), [("1", "bad_document"), ("0", "not_html")])
def test_documents_are_pages(crawl, pages, documents, kind):
    paper = FPDF()
    paper.add_page()
    paper.set_font("helvetica")
    paper.cell(0, 8, "Boil onions, butter and garlic for the pea soup recipe", link="/next")
    pages.add("http://a.test/", FOOD.format("leek") + link("/paper", "/broken"))
    pages.answers["http://a.test/paper"] = (200, {"Content-Type": "x/y"}, bytes(paper.output()))
    pages.add("http://a.test/broken", "%PDF-1.4", Content_Type="application/pdf")
    pages.add("http://a.test/next", FOOD.format("bean"))
    process, items = crawl(
        *("-a", "seed=http://a.test/", "-a", f"documents={documents}"), pages=pages
    )
    assert process.returncode == 0, process.stderr
    read = {item["url"]: item["content_type"] for item in items}
    assert ("http://a.test/next" in read) is (documents == "1")
    assert read.get("http://a.test/paper") == ("application/pdf" if documents == "1" else None)
    assert process.stats[f"tres/failures/{kind}"] == (1 if documents == "1" else 2)


def test_copies_are_harvested_once(crawl, pages):
    copies = [f"http://a.test/?sid={i}" for i in range(3)]
    pages.add("http://a.test/", FOOD.format("leek") + link(*copies))
    for url in copies:
        pages.add(url, FOOD.format("pea"))
    process, items = crawl("-a", "seed=http://a.test/", pages=pages)
    assert [item["title"] for item in items] == ["leek soup recipe", "pea soup recipe"]
    assert process.stats["tres/duplicates"] == 2
    assert process.stats["tres/relevant_pages"] == 2


def test_jsonl_stands_beside_scrapys_own_feeds(crawl, tmp_path, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("/2"))
    pages.add("http://a.test/2", FOOD.format("pea"))
    feed = tmp_path / "feed.jsonl"
    _, items = crawl("-a", "seed=http://a.test/", "-O", f"{feed}:jsonlines", pages=pages)
    assert lines_of(feed) == items
    assert len(items) == 2


def test_chosen_fields_reach_every_output(crawl, tmp_path, pages):
    pages.add("http://a.test/", "<h1>Soups</h1>" + FOOD.format("leek"))
    feed = tmp_path / "feed.parquet"
    process, items = crawl(
        *("-a", "seed=http://a.test/", "-a", "fields=headings,date,markdown", "-O", str(feed)),
        pages=pages,
    )
    assert process.returncode == 0, process.stderr
    assert items[0]["headings"][0] == "Soups"
    assert "leek" in items[0]["markdown"]
    assert "html" not in items[0]
    assert parquet.read_table(feed).to_pylist() == items


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-a", "fields=htm"], "TRES_FIELDS (-a fields=) 'htm': must be none, or some of"),
        (["-a", "topic=fod"], "unknown topic 'fod'"),
        (["-a", "topic=../food"], "TRES_TOPIC (-a topic=) '../food': must be letters"),
        (["-a", "seed=ftp://me:pw@a.test/"], "TRES_SEED (-a seed=) 'ftp://a.test/': must"),
        (["-a", "sed=http://a.test/"], "unknown argument -a sed; did you mean seed?"),
        (["-s", "TRES_GAMA=1"], "unknown setting TRES_GAMA; did you mean TRES_GAMMA?"),
        (["-a", "max_per_domain=2_5"], "TRES_MAX_PER_DOMAIN (-a max_per_domain=) '2_5': must"),
        (["-a", "seed=@nowhere.txt"], "cannot be read"),
        (["-a", "output=/proc/nowhere/x.jsonl"], "TRES_OUTPUT (-a output=) cannot be written"),
        (["-a", f"known={PROJECT}/pyproject.toml"], "line 1 must be a URL or host"),
        (["-a", "web=corpus", "-a", "web_data=README.md"], "line 1 is not a document"),
        (["-a", "web=recorded", "-a", "web_data=nowhere"], "no WARC file at 'nowhere'"),
        (["-s", "DOWNLOAD_TIMEOUT=x"], "DOWNLOAD_TIMEOUT 'x': must be a number"),
        (["-s", "LOG_LEVEL=loud"], "LOG_LEVEL 'loud': must be one of CRITICAL"),
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


@pytest.mark.parametrize("seed", ["http://a.test/missing", "http://no-such-host.invalid/"])
def test_dead_seed_is_one_line(crawl, tmp_path, pages, seed):
    served = pages if "a.test" in seed else None
    process, items = crawl("-a", f"seed={seed}", pages=served)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "No seed brought a page" in process.stderr
    assert not items
    assert not list(tmp_path.glob("pages.*ml*"))  # no report either


@pytest.mark.slow
def test_ctrl_c_once_saves_and_reports(tmp_path):
    output = tmp_path / "pages.jsonl"
    arguments = ("-a", "topic=food", "-a", f"output={output}", "-s", "TRES_WEB=synthetic")
    arguments += ("-s", "LOGSTATS_INTERVAL=0.5")
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
    assert re.search(r"Stopped after \d+ pages: it was not kept in a JOBDIR", log)
    assert "By the web's true labels" in log
    assert "Traceback" not in log
    if output.exists():
        assert all(item["final_url"] for item in lines_of(output))


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("rivals:ORACLE", "it needs the labels of an offline web: add -a web=synthetic"),
        ("nowhere:ACHE", "No module named 'nowhere'"),
        ("string:digits", "is a str, must be a Kind"),
    ],
)
def test_incomplete_policy_is_one_line(crawl, monkeypatch, policy, reason):
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "benchmarks"))
    process, items = crawl(
        *("-a", f"policy={policy}", "-a", "seed=http://a.test/", "-s", "LOG_ENABLED=False")
    )
    assert process.returncode == 1
    assert not items
    assert process.stderr.startswith("scrapy crawl tres: ")
    assert reason in process.stderr
    assert process.stderr.count("\n") == 1


def test_unknown_spider_is_one_line(scrapy):
    process = scrapy("crawl", "tress", "--nolog")
    assert process.returncode == 1
    assert process.stderr == "scrapy crawl: unknown spider 'tress'; did you mean tres?\n"
