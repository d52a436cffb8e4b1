import json
import shutil
import sqlite3

import pytest
from conftest import command

from tres_scrapy.crawl.crawl import PAGE
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.report.explanation import FetchExplanation, plain
from tres_scrapy.report.record import Record
from tres_scrapy.run.reason import GREEDY
from tres_scrapy.run.run_file import RecordError


@pytest.fixture
def path(recorded):
    return recorded.path


@pytest.fixture
def greedy(read):
    return next(page for page in read.last(1000) if page.chosen == GREEDY and page.parent)


def test_explanation_has_path_and_rivals(read, greedy):
    said = str(FetchExplanation(read, greedy.url))
    words = " ".join(said.split())
    assert f"Step {greedy.step}: " in said
    assert f"Highest Q: {greedy.q_value:.2f}, best of" in words
    assert f"Leaf: {read.rule(greedy.leaf, greedy.splits)}." in words
    for number, hop in enumerate(read.trail(greedy)):
        assert f"{number:4} {hop.url}" in said
    for name, value in greedy.x.items():
        assert f"{name:18} {value:6.3f}" in said
    for rival in read.rivals(greedy.step):
        assert f"{rival.q_value:6.3f}   {rival.url}" in said
        assert read.rule(rival.leaf, greedy.splits) in words
    assert max(map(len, said.splitlines())) <= 110


def test_json_has_all_of_it(read, greedy):
    found = json.loads(FetchExplanation(read, greedy.url).as_json())
    assert (found["url"], found["q_value"], found["leaf"]) == (
        *(greedy.url, greedy.q_value, greedy.leaf),
    )
    assert found["rule"] == read.rule(greedy.leaf, greedy.splits)
    assert found["why"] == read.why(greedy)
    assert found["x"] == greedy.x
    assert [hop["url"] for hop in found["path"]] == [hop.url for hop in read.trail(greedy)]
    assert [rival["q_value"] for rival in found["rivals"]] == [
        rival.q_value for rival in read.rivals(greedy.step)
    ]
    assert all(rival["rule"] for rival in found["rivals"])


def test_seed_and_failure_are_explained_too(read):
    seed, failure = read.last(1000)[-1], next(p for p in read.last(1000) if p.kind == "http_404")
    assert "Why: Seed." in str(FetchExplanation(read, seed.url))
    assert "failed: http 404" in str(FetchExplanation(read, failure.url))


def test_unrecorded_way_says_so(path, tmp_path, greedy):
    copy = tmp_path / "a.run"
    shutil.copy(path, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute("DELETE FROM page WHERE parent IS NULL")
    connection.close()
    with Record(copy) as read:
        assert "Path (the record has only a part):" in str(FetchExplanation(read, greedy.url))


def test_unknown_url_names_the_nearest(read):
    pages = read.last(1000)
    failed = {page.domain for page in pages if page.kind != PAGE}
    url = next(page.url for page in pages if page.domain not in failed)
    with pytest.raises(RecordError, match=r"was not fetched in this crawl; did you mean .*"):
        FetchExplanation(read, f"{url}x")


def test_changed_domain_says_so(path, tmp_path):
    copy = tmp_path / "a.run"
    shutil.copy(path, copy)
    with sqlite3.connect(copy) as connection:  # no share is as high
        domain = FEATURES.index("domain_relevance")
        change = "UPDATE split SET feature = ?, threshold = 2 WHERE number = 0"
        connection.execute(change, (domain,))
    connection.close()
    with Record(copy) as read:
        found = set()
        for page in read.last(1000):
            moved, rule = read.has_moved(page), read.rule(page.leaf, page.splits)
            said = " ".join(str(FetchExplanation(read, page.url)).split())
            assert moved is ("have changed" in said)
            assert moved or "at least 200" not in rule
            found.add(moved)
    assert found == {False, True}


def test_explanation_escapes_terminal_commands():
    assert plain("a\x1b[2Jb\nc\u202e") == "a [2Jb c "


def test_command_prints_words_or_json(path, greedy, capsys):
    with pytest.raises(SystemExit, match="0"):
        command("explain", path, f"{greedy.url}#part")
    assert greedy.url in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        command("explain", path, greedy.url, "--json")
    assert json.loads(capsys.readouterr().out)["step"] == greedy.step


def test_explain_error_is_one_line(path):
    with pytest.raises(SystemExit) as error:
        command("explain", path, "http://nowhere.test/")
    assert str(error.value).startswith("tres explain: ")
    assert "\n" not in str(error.value)


def test_link_that_waited_says_with_which_q(read):
    fetched = {page.url for page in read.last(1000)}
    step, rival = next(
        (page.step, rival)
        for page in read.last(1000)
        for rival in read.rivals(page.step)
        if rival.url not in fetched
    )
    chosen = read.last(1, before=step + 1)[0]
    with pytest.raises(RecordError) as error:
        FetchExplanation(read, rival.url)
    said = str(error.value)
    assert said.startswith(
        f"{rival.url} was not fetched: it waited in the frontier; at step {step}"
    )
    assert f"step {step} its Q was {rival.q_value:.3f} and the choice was {chosen.url}" in said


def test_full_or_failing_domain_is_named(path, tmp_path, read):
    copy = tmp_path / "a.run"
    shutil.copy(path, copy)
    domain, pages, _ = read.domains(1)[0]
    with sqlite3.connect(copy) as connection:
        values = ("TRES_MAX_PER_DOMAIN", str(pages))
        connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", values)
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('reason', 'page_limit')")
    connection.close()
    failed = next(page for page in read.last(1000) if page.kind == "http_404")
    with Record(copy) as full:
        with pytest.raises(RecordError, match=rf"{domain} has had its {pages} pages \(max_per_dom"):
            FetchExplanation(full, f"http://{domain}/never-seen")
        with pytest.raises(RecordError, match=r"failed: http_404 \d+.*has ended \(page_limit\)"):
            FetchExplanation(full, f"http://{failed.domain}/never-seen")


def test_closed_site_is_named(path, tmp_path, read):
    copy = tmp_path / "a.run"
    shutil.copy(path, copy)
    domain = read.domains(1)[0][0]
    rules = f"other.test 08:00-09:00, www.{domain} always 50"
    settings = [("TRES_CRAWL_BETWEEN", "22:00-06:00"), ("TRES_SITE_RULES", rules)]
    with sqlite3.connect(copy) as connection:
        connection.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?)", settings)
        meta = (f"requests of {domain}", "20000 50")
        connection.execute("INSERT INTO meta VALUES (?, ?)", meta)
    connection.close()
    with Record(copy) as limited:
        said = rf"{domain} has had its 50 requests of 2024-10-04 \(max_per_day\)"
        with pytest.raises(RecordError, match=said) as error:
            FetchExplanation(limited, f"http://{domain}/never-seen")
        assert "crawl_between" not in str(error.value)
        for site, hours in (("new.test", "22:00-06:00"), ("other.test", "08:00-09:00")):
            said = rf"{site} is crawled at {hours} UTC only \(crawl_between\)"
            with pytest.raises(RecordError, match=said):
                FetchExplanation(limited, f"http://{site}/never-seen")
