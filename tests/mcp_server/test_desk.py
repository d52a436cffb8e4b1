"""What an agent can ask of crawls, and what it cannot."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from recorded_run import crawl_of, record, record_poor

from tres_scrapy.export import topic_view
from tres_scrapy.mcp_server.desk import TOOLS, Desk
from tres_scrapy.mcp_server.reply import CUT, LONG, NOTE, SHORT, reply
from tres_scrapy.mcp_server.workplace import MOST_KEYWORDS, MOST_SEEDS, Workplace
from tres_scrapy.report.record import Record
from tres_scrapy.topic.keyword_topic import PageWords
from tres_scrapy.topic.topic_folder import TopicFolder
from tres_scrapy.url.message import TresError

SEED = "http://a.test/"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "tres.run"
    record(path, crawl_of(pages=60))
    return path


@pytest.fixture
def desk(tmp_path, run):
    """A desk with a finished crawl from keywords."""
    job = tmp_path / "runs" / "tea" / "job"
    (job / "topic" / "pack").mkdir(parents=True)
    shutil.copy(run, job / "tres.run")
    folder = TopicFolder(job / "topic")
    pages = [PageWords(f"http://p.test/{i}", "a tea", "leaf", {}) for i in range(3)]
    for number, page in enumerate(pages):
        folder.add_page(number, str(number), page)
    folder.write_questions((page, 0.5, "best") for page in pages)
    return Desk(Workplace(tmp_path / "runs", most_pages=500))


class Started:
    """A process that does not run."""

    def __init__(self, words, **given):
        self.words, self.given = words, given

    def poll(self):
        return None


@pytest.fixture
def started(monkeypatch):
    found = []

    def start(words, **given):
        found.append(Started(words, **given))
        return found[-1]

    monkeypatch.setattr("tres_scrapy.mcp_server.workplace.subprocess.Popen", start)
    return found


def test_crawl_is_a_line_of_words(tmp_path, started):
    desk = Desk(Workplace(tmp_path, arguments={"web": "recorded"}))
    desk.start_crawl("tea", ["http://A.test/x#y"], keywords=["green tea", "oolong"], pages=50)
    words = started[0].words
    place = tmp_path / "tea"
    assert {"web=recorded", "pages=50"} <= set(words)
    assert words[words.index("--jobdir") + 1] == str(place / "job")
    assert "shell" not in started[0].given
    assert (place / "seeds.txt").read_text() == "http://a.test/x\n"
    assert (place / "keywords.txt").read_text() == "green tea\noolong\n"
    assert json.loads(desk.list_crawls())["results"] == [{"name": "tea", "is_running": True}]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"name": "../x"}, "lower-case letters"),
        ({"name": "-a"}, "lower-case letters"),
        ({"name": "tea"}, "exists"),
        ({"pages": 501}, "from 1 to 500"),
        ({"pages": 0}, "from 1 to 500"),
        ({"topic": "food"}, "either topic or keywords"),
        ({"keywords": []}, "either topic or keywords"),
        ({"keywords": [], "topic": "../../etc"}, "topic must be one of"),
        ({"keywords": ["tea\nfile"]}, "must be a few words"),
        ({"keywords": ["--output=x"]}, "must be a few words"),
        ({"keywords": ["tea"] * (MOST_KEYWORDS + 1)}, "at most"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [SEED] * (MOST_SEEDS + 1)}, "seeds"),
        ({"seeds": ["file:///etc/passwd"]}, "http or https"),
        ({"seeds": ["@/etc/passwd"]}, "http or https"),
        ({"seeds": ["javascript:alert(1)"]}, "http or https"),
    ],
)
def test_what_is_not_allowed_starts_nothing(desk, started, given, complaint):
    with pytest.raises(TresError, match=complaint):
        desk.start_crawl(**{"name": "new", "seeds": [SEED], "keywords": ["tea"]} | given)
    assert not started
    assert desk.workplace.names() == ["tea"]


def test_agent_cannot_allow_private_addresses():
    for tool in TOOLS:
        given = set(tool.__annotations__)
        assert not given & {"arguments", "settings", "options", "private_addresses", "path"}


def test_only_a_few_crawls_run_at_once(tmp_path, started):
    desk = Desk(Workplace(tmp_path, most_running=1))
    desk.start_crawl("one", [SEED], keywords=["tea"])
    with pytest.raises(TresError, match="one still run"):
        desk.start_crawl("two", [SEED], keywords=["tea"])
    assert len(started) == 1


@pytest.mark.parametrize("name", ["..", "other", "", "linked", "job/../tea"])
def test_no_file_outside_is_read(desk, name, tmp_path):
    (tmp_path / "outside" / "job").mkdir(parents=True)
    (desk.workplace.folder / "linked").symlink_to(tmp_path / "outside")
    for tool in (desk.crawl_state, desk.questions, desk.search_pages, desk.export):
        with pytest.raises(TresError, match="no crawl is named"):
            tool(name)


def test_crawl_that_has_just_started_has_a_state(desk, started):
    desk.start_crawl("new", [SEED], keywords=["coffee"])
    state = json.loads(desk.crawl_state("new"))
    assert (state["is_running"], state["pages"]) == (True, 0)


def test_state_has_figures_and_sites(desk):
    state = json.loads(desk.crawl_state("tea"))
    assert state["pages"] > state["relevant"] > 0
    assert (state["ended"], state["open_questions"]) == ("page_limit", 3)
    assert state["results"][0].keys() == {"site", "pages", "relevant"}


def test_every_page_has_its_url_and_marked_text(desk):
    found = json.loads(desk.search_pages("tea", count=20))
    assert found["note"] == NOTE
    assert found["results"]
    for row in found["results"]:
        assert row["url"].startswith("http://")
        assert row.keys() == {"url", "title_data", "text_data", "probability"}
    url = found["results"][0]["url"]
    text = json.loads(desk.page_text("tea", url))
    assert (text["url"], text["offset"]) == (url, 0)
    assert text["text_data"].startswith("text ")
    explained = json.loads(desk.explain_page("tea", url))
    assert explained["url"] == url
    assert "Path" in explained["explanation_data"]


def test_answered_pages_are_asked_no_more(desk):
    first, second = (f"http://p.test/{i}" for i in range(2))
    desk.answer("tea", yes=[first], no=[second])
    (left,) = json.loads(desk.questions("tea"))["results"]
    assert left["url"] == "http://p.test/2"
    answers = (desk.workplace.job("tea") / "topic" / "answers.txt").read_text()
    assert answers == f"yes {first}\nno {second}\n"


def test_a_trained_topic_is_asked_about_too(tmp_path):
    job = tmp_path / "runs" / "food" / "job"
    job.mkdir(parents=True)
    record_poor(job / "tres.run")
    desk = Desk(Workplace(tmp_path / "runs"))
    assert "open_questions" not in json.loads(desk.crawl_state("food"))
    asked = json.loads(desk.questions("food"))
    assert asked["open_questions"] > 1
    url = asked["results"][0]["url"]
    desk.answer("food", yes=[url])
    assert json.loads(desk.crawl_state("food"))["open_questions"] == asked["open_questions"] - 1


@pytest.mark.parametrize(
    "told",
    [{}, {"yes": ["http://p.test/1"], "no": ["http://p.test/1"]}, {"no": ["http://x.test/"]}],
)
def test_wrong_answers_are_refused(desk, told):
    with pytest.raises(TresError):
        desk.answer("tea", **told)
    assert len(json.loads(desk.questions("tea"))["results"]) == 3


def test_export_stays_in_the_folder_of_the_crawl(desk):
    found = json.loads(desk.export("tea", "csv", 0.0))
    assert found["file"] == str(desk.workplace.folder / "tea" / "export.csv")
    assert (desk.workplace.folder / "tea" / "export.csv").stat().st_size > 0
    for ending in ("exe", "csv/../../x", "csv\0"):
        with pytest.raises(TresError):
            desk.export("tea", ending)


def test_export_of_an_ended_crawl_is_judged_again(desk, run, monkeypatch):
    with Record(run) as read:
        urls = [page.final_url or page.url for page in read.pages(0.0)]
    folder = TopicFolder(desk.workplace.job("tea") / "topic")
    folder.answers.write_text(f"no {urls[0]}\nyes {urls[1]}\n", encoding="utf-8")
    folder.write_state({"answers": {urls[0]: False, urls[1]: True}})

    class Doubtful:
        prior_weight = 0.0
        is_uncorrected = False

        @classmethod
        def of(cls, pack):
            return cls()

        def judge(self, pages):
            return np.array([0.9 if page.url in (urls[0], urls[2]) else 0.1 for page in pages])

    monkeypatch.setattr(topic_view, "Pack", SimpleNamespace(load=lambda _: Doubtful()))
    monkeypatch.setattr(topic_view, "TopicFit", Doubtful)
    monkeypatch.setattr(topic_view, "sha256", lambda _: "")
    found = json.loads(desk.export("tea"))
    text = Path(found["file"]).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert found["judged_again"]
    assert [line["final_url"] for line in lines] == urls[1:3]
    assert [line["probability"] for line in lines] == [0.1, 0.9]


def test_stopped_crawl_cannot_be_stopped(desk):
    with pytest.raises(TresError, match="does not run"):
        desk.stop_crawl("tea")


@pytest.mark.parametrize("character", ["a", "ж", "茶", '"', "\n", "\ud800"])
@pytest.mark.parametrize("is_long", [False, True])
def test_reply_has_a_limit(character, is_long):
    rows = [{"url": SEED, "text_data": character * 90_000} for _ in range(9)]
    text = reply({"found": 9}, rows, long=is_long)
    assert len(text.encode()) <= (LONG if is_long else SHORT)
    found = json.loads(text)
    assert found["results"]
    assert found["left_out"].endswith(CUT)
    alone = reply({"url": SEED, "text_data": character * 90_000}, long=is_long)
    assert len(alone.encode()) <= (LONG if is_long else SHORT)
    assert json.loads(alone)["url"] == SEED


def test_reply_with_long_lists_and_texts_has_a_limit():
    facts = {"seeds": [f"{SEED}{'x' * 200}"] * 100, "log": "x" * 5_000, "state": "茶" * 5_000}
    text = reply(facts | {"pages": 7}, long=False)
    assert len(text.encode()) <= SHORT
    said = json.loads(text)
    assert (said["pages"], said["left_out"]) == (7, CUT)
    assert said["seeds"] == facts["seeds"][: len(said["seeds"])]
    assert said["seeds"]
