"""Pages that are taken out of every file of a run."""

import gzip
import json
import shutil
from contextlib import closing

import pytest
from conftest import command
from recorded_run import crawl_of, record

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import LearningOptions, LinkOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.forget import forgetting
from tres_scrapy.forget.file import forget_lines, forget_records, forget_table
from tres_scrapy.forget.forgetting import forget, wanted_of
from tres_scrapy.frontier.host import host_of
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.page.text import Page
from tres_scrapy.report.record import Record
from tres_scrapy.report.share import totals
from tres_scrapy.run.database import Access
from tres_scrapy.run.forgotten import Forgotten
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import recover
from tres_scrapy.run.run_file import SCHEMA, open_to_write
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import add_answers
from tres_scrapy.topic.topic_learner import TopicLearner, open_topic
from tres_scrapy.url.message import TresError

SITE = "13.test"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    record(folder / "food.run", crawl_of(pages=150), is_durable=True)
    with Record(folder / "food.run") as read:
        pages = list(read.pages(0.0))
    rows = [{"url": page.final_url or page.url, "path": [page.url, "x"]} for page in pages]
    (folder / "food.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "food.csv").write_text("".join(["url,title\n", *(f"{r['url']},a\n" for r in rows)]))
    with closing(SCHEMA.open(folder / "food.run", Access.SHARED)) as file:
        output = str(folder / "food.jsonl")
        file.execute("INSERT OR REPLACE INTO meta VALUES ('output', ?)", (output,))
        file.execute("PRAGMA journal_mode = DELETE")
    return folder


@pytest.fixture
def run(original, tmp_path):
    for path in original.glob("food.*"):
        shutil.copy(path, tmp_path)
    with closing(SCHEMA.open(tmp_path / "food.run", Access.SHARED)) as file:
        output = str(tmp_path / "food.jsonl")
        file.execute("UPDATE meta SET value = ? WHERE name = 'output'", (output,))
    return tmp_path / "food.run"


def dumped(run):
    with closing(SCHEMA.open(run, Access.READ)) as file:
        return [
            f"{table}: {row}"
            for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for row in file.execute(f"SELECT * FROM {table}")  # noqa: S608
        ]


def named_in(run, text):
    """Return the tables of a run, but for the refusal and host names, that name a text."""
    rows = [line for line in dumped(run) if "'forgotten'," not in line]
    return {line.partition(":")[0] for line in rows if f"//{text}/" in line}


def _is_of_site(page):
    return SITE in {host_of(page.url), host_of(page.final_url or page.url)}


def test_site_is_in_no_table_and_no_file(run):
    assert {"page", "batch"} <= named_in(run, SITE)
    forget(run, wanted_of(SITE), print)
    assert named_in(run, SITE) == set()
    for ending in (".jsonl", ".csv"):
        assert f"//{SITE}/" not in run.with_suffix(ending).read_text()
    raw = run.read_bytes()
    assert f"//{SITE}/".encode() not in raw


def test_other_pages_stay(run):
    with Record(run) as read:
        before = {page.url for page in read.pages(0.0) if not _is_of_site(page)}
    lines = run.with_suffix(".jsonl").read_text().count("\n")
    forget(run, wanted_of(SITE), print)
    with Record(run) as read:
        after = {page.url for page in read.pages(0.0)}
    assert after == before
    assert 0 < run.with_suffix(".jsonl").read_text().count("\n") < lines


def test_page_is_forgotten_by_all_its_names(run):
    with Record(run) as read:
        moved = next(page for page in read.pages(0.0) if page.final_url)
    forget(run, wanted_of(moved.final_url), print)
    with closing(SCHEMA.open(run, Access.READ)) as file:
        assert {moved.url, moved.final_url} == set(Forgotten.read(file).urls)
    with Record(run) as read:
        assert read.find(moved.url) is None


def test_resumed_crawl_fetches_no_forgotten_page(run):
    forget(run, wanted_of(SITE), print)
    store = SampleStore(DomainLedger())
    setup = PolicyInputs(0, learning=LearningOptions(exploration_steps=20), links=LinkOptions())
    crawl = Crawl(store, make_policy("tres", store, setup), 400)
    database = SCHEMA.open(run, Access.EXCLUSIVE)
    with closing(database):
        recover(Journal(database), crawl)
    waiting = store.pending_rows().tolist()
    assert waiting
    assert not [row for row in waiting if host_of(store.url(row)) in {SITE, "forgotten.invalid"}]
    assert store.closure.is_closed(f"http://{SITE}/never/seen")
    assert store.closure.is_closed(f"http://deep.{SITE}/")
    assert not store.closure.is_closed("http://other.test/never")
    assert crawl.next() is not None


def test_kill_in_the_middle_can_be_completed(run, monkeypatch):
    class KilledError(Exception):
        pass

    def kill(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(forgetting, "scrub", kill)
        with pytest.raises(KilledError):
            forget(run, wanted_of(SITE), print)
    assert "page" in named_in(run, SITE)  # the refusal is there, the pages still are
    with closing(SCHEMA.open(run, Access.READ)) as file:
        assert Forgotten.read(file).sites == {SITE}
    forget(run, wanted_of(SITE), print)
    assert named_in(run, SITE) == set()


def test_second_time_changes_nothing(run):
    forget(run, wanted_of(SITE), print)
    before = dumped(run)
    forget(run, wanted_of(SITE), print)
    assert dumped(run) == before


def test_delivered_pages_are_listed(run):
    with Record(run) as read:
        pages = [page for page in read.pages() if host_of(page.final_url or page.url) == SITE]
    with closing(open_to_write(run)) as file:  # the first turned relevant after its fetch
        file.execute("UPDATE page SET relevant = 0 WHERE row = ?", (pages[0].row,))
        file.execute("INSERT INTO meta VALUES ('late items', ?)", (json.dumps([pages[0].row]),))
    said = []
    forget(run, wanted_of(SITE), said.append)
    assert len(pages) > 1
    assert {f"delivered before: {page.url}" for page in pages} <= set(said)


def test_record_of_another_crawl_to_the_output_is_named(run):
    other = shutil.copy(run, run.with_name("food-20260101T000000.run"))
    said = []
    forget(run, Forgotten(sites=frozenset({SITE})), said.append)
    assert f"{other} is of another crawl to food.jsonl: it keeps what it has of them" in said
    assert not any(line.startswith(f"{run} is of another crawl") for line in said)


@pytest.mark.parametrize("place", ["food-20260101T000000.run", "food.run"])
def test_topic_beside_the_output_forgets_and_is_fitted_again(run, place):
    path = run.replace(run.with_name(place))  # that of a second crawl to one output has a time
    words = KeywordSet.parse(["food", "soup"])
    folder = run.with_suffix(".topic")
    open_topic("food", words, folder)
    learner = TopicLearner(folder, "food", words)
    for site, word in (("13.test", "skirret"), ("14.test", "scorzonera")):
        for number in range(12):
            page = Page(f"http://{site}/{number}", "soup", f"soup of {word} and bread " * 8, ())
            learner.keep(page, f"{number:04}{site}".encode())
    add_answers(learner.folder.answers, {"http://14.test/1": True, "http://14.test/2": False})
    learner.learn()
    before = Pack.load(learner.folder.pack).classifier.words
    said = []
    forget(path, Forgotten(sites=frozenset({SITE})), said.append)
    assert any(line.startswith(f"{folder}: 12 taken out, fitted again. ") for line in said)
    after = Pack.load(learner.folder.pack).classifier.words
    assert "skirret" in before
    assert "skirret" not in after
    assert "scorzonera" in after
    left = [
        file for file in folder.rglob("*") if file.is_file() and b"13.test" in file.read_bytes()
    ]
    assert left == []


def test_site_that_was_not_fetched_is_named_and_refused(run):
    said = []
    forget(run, wanted_of("never.test"), said.append)
    assert said[0] == f"{run} has no page of never.test: a resumed crawl will not fetch one"
    assert said[-1] == f"{run}: 0 forgotten"
    with closing(open_to_write(run)) as file:
        assert Forgotten.read(file).sites == {"never.test"}


def test_site_never_fetched_is_named_after_others_were_forgotten(run):
    for site, is_missing in ((SITE, False), ("never.test", True), (SITE, True)):
        said = []
        forget(run, wanted_of(site), said.append)
        line = f"{run} has no page of {site}: a resumed crawl will not fetch one"
        assert (line in said) is is_missing
        assert (said[-1] == f"{run}: 0 forgotten") is is_missing


def test_report_shows_what_is_left(run):
    run.with_suffix(".html").write_text("old")
    with Record(run) as read:
        gone = [page for page in read.last(1000) if _is_of_site(page)]
        before = totals(read)
    forget(run, wanted_of(SITE), print)
    with Record(run) as read:
        left = totals(read)
    pages = [page for page in gone if page.kind == "page"]
    assert left.pages == before.pages - len(pages)
    assert left.relevant == before.relevant - sum(page.relevant for page in pages)
    text = run.with_suffix(".html").read_text()
    assert f"{left.relevant} of {left.pages} pages" in text
    assert f"Taken out, but still in the curves: {len(gone)} forgotten fetches." in text


def test_text_shared_with_another_page_stays_with_it(run):
    with closing(SCHEMA.open(run, Access.SHARED)) as file:
        rows = [row for (row,) in file.execute("SELECT row FROM page WHERE kind = 'page' LIMIT 2")]
        urls = [url for (url,) in file.execute("SELECT url FROM page WHERE kind = 'page' LIMIT 2")]
        file.execute("DELETE FROM text")
        texts = [(rows[0], 7, b"text"), (rows[1], 7, None)]
        file.executemany("INSERT INTO text VALUES (?, ?, ?)", texts)
    forget(run, wanted_of(urls[0]), print)
    with closing(SCHEMA.open(run, Access.READ)) as file:
        assert file.execute("SELECT * FROM text").fetchall() == [(rows[1], 7, b"text")]


def test_snapshots_that_name_sites_are_deleted(run):
    with closing(open_to_write(run)) as file:
        for name in ("links", "doors", "holder"):
            file.execute("INSERT OR REPLACE INTO snapshot VALUES (?, 0, '{}')", (name,))
    forget(run, wanted_of("unknown.test"), print)
    with Record(run) as read:
        assert [read.snapshot(name) for name in ("links", "doors", "holder")] == [None] * 3


def test_missing_run_is_not_created(tmp_path):
    with pytest.raises(TresError, match="does not exist"):
        forget(tmp_path / "nope", wanted_of("http://x.test/"), print)
    assert not [*tmp_path.iterdir()]


def test_running_crawl_is_not_changed(run):
    with closing(SCHEMA.open(run, Access.EXCLUSIVE)), pytest.raises(TresError, match="is using"):
        forget(run, wanted_of(SITE), print)
    with closing(SCHEMA.open(run, Access.SHARED)) as file:
        file.execute("DELETE FROM meta WHERE name = 'ended'")
    with pytest.raises(TresError, match="has not ended"):
        forget(run, wanted_of(SITE), print)
    assert "page" in named_in(run, SITE)


@pytest.mark.parametrize("text", ["", "word", "http://", "a.test/x", "-", "ftp://a.test/", "a b.c"])
def test_what_is_no_page_or_site_is_refused(text):
    with pytest.raises(TresError, match="must be a URL, or a site"):
        wanted_of(text)


def test_site_covers_hosts_below_it_alone():
    site = wanted_of("Example.org.")
    assert site.covers("https://example.org/x")
    assert site.covers("http://www.example.org/")
    assert not site.covers("http://notexample.org/")
    assert not site.covers("urn:uuid:example.org")


def test_paths_of_other_items_lose_forgotten_urls(tmp_path):
    path, gone = tmp_path / "a.jsonl", wanted_of("a.test")
    rows = [
        {"url": "http://a.test/", "title": "gone"},
        {"url": "http://b.test/", "path": ["http://a.test/", "http://b.test/"]},
        {"url": "http://c.test/", "final_url": "http://a.test/z"},
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert forget_lines(path, gone) == 2
    assert json.loads(path.read_text())["path"] == ["", "http://b.test/"]


def test_table_of_domains_loses_the_site(tmp_path):
    path = tmp_path / "a-domains.csv"
    path.write_text("domain,pages\na.test,3\nb.test,4\n")
    assert forget_table(path, wanted_of("a.test")) == 1
    assert path.read_text() == "domain,pages\nb.test,4\n"


def record_of(url):
    head = ["WARC/1.1", "WARC-Type: resource", f"WARC-Target-URI: {url}", "Content-Length: 9"]
    return gzip.compress("\r\n".join([*head, "", "something", "", ""]).encode())


def test_archive_loses_records_and_keeps_others_as_they_are(tmp_path):
    path = tmp_path / "a.warc.gz"
    parts = [record_of(url) for url in ("http://a.test/", "http://b.test/", "http://a.test/2")]
    path.write_bytes(b"".join(parts))
    assert forget_records(path, wanted_of("a.test")) == 2
    assert path.read_bytes() == parts[1]
    other = tmp_path / "b.warc.gz"
    other.write_bytes(gzip.compress(b"no archive" * 9))
    with pytest.raises((TresError, OSError), match="WARC"):
        forget_records(other, wanted_of("a.test"))
    assert gzip.decompress(other.read_bytes()) == b"no archive" * 9


def test_command_says_what_it_could_not_change(run, capsys):
    with pytest.raises(SystemExit, match="0"):
        command("forget", SITE, str(run))
    said = capsys.readouterr().out
    assert "Not changed: what pipelines, feeds" in said
    assert f"{run.with_suffix('.jsonl')}: " in said
