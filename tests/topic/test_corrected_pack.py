"""A trained pack that answers correct while the crawl runs."""

from dataclasses import replace
from shutil import copytree

import numpy as np
import pytest
from soup import FOOD
from test_topic_learner import KEYWORDS, page

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.copies import SKETCH, fingerprint
from tres_scrapy.page.text import read_page
from tres_scrapy.topic.corrected_pack import CorrectedPack, odds_of
from tres_scrapy.topic.judge import FIRST_PAGES, Source
from tres_scrapy.topic.keyword_topic import PageWords
from tres_scrapy.topic.learning_judge import LearningTask
from tres_scrapy.topic.pack import load_packs, text_of
from tres_scrapy.topic.shipped import TOPIC_FILE, packs
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers
from tres_scrapy.topic.topic_learner import (
    TopicLearner,
    begin_topic,
    keywords_of,
    learn_answers,
    open_topic,
)
from tres_scrapy.url.message import TresError

WAITING = (("http://y.test/", "leek soup with bread"), ("http://z.test/", "football"))


@pytest.fixture
def task(tmp_path):
    folder = tmp_path / "topic"
    return LearningTask(packs()["food"], ReadingLimits(), folder=folder, name="food", asks=False)


def sources(*numbers):
    html = [page(number) for number in numbers]
    return [
        Source(f"<title>{each.title}</title><p>{each.text}</p>".encode(), each.url, waiting=WAITING)
        for each in html
    ]


def told(task, answers):
    task.folder.mkdir(exist_ok=True)
    add_answers(TopicFolder(task.folder).answers, answers)


def test_without_answers_the_pack_judges(task):
    judge, plain = task.load(), load_packs(task.packs)
    judge.learn()
    (found,) = judge(sources(0)[:1])
    assert found.probability == plain.judge([found.page])[0].probability
    assert (found.model, found.described, found.scores) == ("", None, {})
    assert not task.folder.exists()


def test_answers_correct_pages_and_links_at_once(task):
    judge = task.load()
    judge(sources(*range(6)))
    told(task, {"http://h6.test/": True})
    judge.learn()
    before = judge(sources(*range(8)))
    told(task, {page(number).url: number % 2 == 1 for number in range(7)})
    judge.learn()
    after = judge(sources(*range(20, 28)))
    assert min(each.probability for each in before[::2]) > 0.9
    assert max(each.probability for each in after[::2]) < load_packs(task.packs).threshold
    trained = load_packs(task.packs).judge([each.page for each in after])
    assert [each.scores["food"] for each in after] == [each.probability for each in trained]
    asking, *others = sources(*range(8))
    now = judge([asking._replace(again=True), *others])
    again = [now[0].again[each.mark[:SKETCH].hex()] for each in now]
    assert again == pytest.approx([each.probability for each in now], abs=1e-5)
    assert not now[1].again
    assert after[0].model != before[0].model
    assert after[0].described[0, 2] < before[0].described[0, 2]
    assert any("by the answers, precision is" in note for note in after[0].notes)


def test_killed_process_goes_on(task):
    judge = task.load()
    told(task, {"http://h0.test/": False})
    judge.learn()
    judge(sources(*range(12)))
    judge.learn()
    expected = judge(sources(14))[0].probability
    judge._holding.close()  # as the end of its process
    assert task.load()(sources(14))[0].probability == pytest.approx(expected)


def test_answers_of_a_file_count_when_it_is_not_named_again(task, tmp_path):
    file = tmp_path / "mine.txt"
    add_answers(file, {"http://h0.test/": False})
    judge = replace(task, asks=True, answers=file).load()
    judge(sources(*range(12)))
    judge.learn()
    expected = judge(sources(14))[0].probability
    judge._holding.close()
    resumed = task.load()
    resumed.learn()
    assert resumed(sources(14))[0].probability == pytest.approx(expected)


def test_damaged_folder_does_not_end_the_crawl(task):
    judge = task.load()
    told(task, {"http://h0.test/": False})
    (task.folder / "state.json").write_text("{")
    (task.folder / "pack").mkdir()
    judge.learn()
    notes = [each.notes for each in judge(sources(0, 1))]
    assert notes[0][0].startswith("the topic cannot learn: ")
    assert notes[1] == ()
    judge.learn()
    assert judge(sources(2))[0].notes == ()


def test_folder_that_cannot_be_made_is_one_line(task, tmp_path):
    (tmp_path / "file").touch()
    asked = replace(task, asks=True, folder=tmp_path / "file" / "a.topic")
    with pytest.raises(TresError, match=r"the topic cannot be kept in .*file"):
        asked.load()


def test_threshold_of_the_pack_stays(task, tmp_path):
    trained = load_packs(task.packs)
    folder = TopicFolder(tmp_path)
    begin_topic(folder, "food", trained)
    corrected = CorrectedPack(trained, load_packs([folder.pack]))
    pages = [read_page(FOOD.format(word), "http://a.test/") for word in ("leek", "tax")]
    (one, other) = corrected.judge(pages)
    moved = odds_of([one.probability, other.probability]) - odds_of(trained.threshold)
    assert moved == pytest.approx(odds_of([*one.scores.values(), *other.scores.values()]), abs=1e-3)
    assert np.isfinite(odds_of([0.0, 1.0])).all()


@pytest.fixture
def strict(task, tmp_path):
    """The task of a pack with a threshold so high that it calls no page relevant."""
    pack = tmp_path / "models" / "food"
    copytree(packs()["food"], pack)
    copytree(packs()["food"].parent / "vectors", tmp_path / "models" / "vectors")
    facts = (pack / TOPIC_FILE).read_text().replace("threshold = 0.3728", "threshold = 0.999999")
    (pack / TOPIC_FILE).write_text(facts)
    assert load_packs([pack]).threshold == 0.999999
    return replace(task, pack=pack)


def little(*numbers):
    """Pages of a crawl that has found little so far."""
    return [each._replace(little=True) for each in sources(*numbers)]


def test_pack_that_is_blind_learns_from_its_keywords(strict):
    judge = strict.load()
    for start in range(0, 48, 8):
        before = judge(sources(*range(start, start + 8)))
        judge.learn()
    assert not strict.folder.exists()
    judge(little(48, 49))
    judge.learn()  # the first pages are there
    after = judge(sources(50, 51))
    assert before[0].probability < judge._trained.threshold < after[0].probability
    assert after[1].probability < judge._trained.threshold
    assert after[0].scores["food"] == pytest.approx(before[0].probability, abs=1e-3)
    assert after[0].model
    said = "the trained topic hardly knows the pages of this crawl: of 50 it calls 0 relevant, its "
    assert [each.notes[0][: len(said)] for each in after if each.notes] == [said]
    judge._holding.close()  # as the end of its process
    resumed = strict.load()
    again = resumed(sources(50, 51))
    assert again[0].notes[0].startswith("the trained topic hardly knows the pages of this crawl; ")
    assert [each.probability for each in again] == [each.probability for each in after]
    judge_more(resumed, range(52, 80))
    assert resumed(sources(0))[0].probability > judge._trained.threshold


def judge_more(judge, numbers):
    """Judge pages and learn from them; nothing is said."""
    found = judge(sources(*numbers))
    judge.learn()
    said = [note for each in found for note in each.notes]
    assert not any("hardly knows" in note for note in said)


def test_blind_pack_says_the_same_of_all_anchors(strict):
    judge = strict.load()
    judge(little(*range(FIRST_PAGES)))
    judge.learn()
    pack = judge._learner.pack
    features = pack.action_features(["http://a.test/"] * 2, ["leek soup with bread", "football"])
    assert features[0, 2] > features[1, 2]
    trained = judge._trained.action_features(["http://a.test/"], ["leek soup with bread"])
    pack._trained.action_features = lambda urls, anchors: 0.5 * trained.repeat(len(urls), axis=0)
    assert pack.action_features(["http://a.test/"], ["football"])[0, 2] == features[1, 2]


@pytest.mark.parametrize("share", [False, None])
def test_pack_that_finds_pages_does_not_learn(task, share):
    judge = task.load()
    for _ in range(3):
        judge([each._replace(little=share) for each in sources(*range(FIRST_PAGES))])
        judge.learn()
    assert not task.folder.exists()


def test_crawl_that_keeps_nothing_does_not_doubt(strict):
    judge = replace(strict, doubts=False).load()
    judge(little(*range(FIRST_PAGES)))
    judge.learn()
    assert not strict.folder.exists()


def test_pack_of_a_watched_crawl_is_not_doubted(strict):
    judge = replace(strict, asks=True).load()
    judge(sources(*range(FIRST_PAGES)))
    judge.learn()
    assert not judge(sources(50))[0].model
    judge(little(51))
    judge.learn()
    assert judge(sources(52))[0].model


def test_own_judge_is_not_doubted(strict, tmp_path, monkeypatch):
    (tmp_path / "never.py").write_text("def judge(pages):\n    return [0.0] * len(pages)\n")
    monkeypatch.syspath_prepend(tmp_path)
    judge = replace(strict, own_judge="never:judge").load()
    judge(little(*range(FIRST_PAGES)))
    judge.learn()
    assert not strict.folder.exists()
    asked = replace(strict, own_judge="never:judge", asks=True).load()
    asked(little(*range(FIRST_PAGES)))
    asked.learn()
    assert asked(sources(50))[0].probability == 0.0


def test_pack_without_keywords_is_not_doubted(strict):
    facts = strict.pack / TOPIC_FILE
    lines = facts.read_text().splitlines()
    empty = [
        f"{line.split()[0]} = []" if line.startswith(("given", "phrases")) else line
        for line in lines
    ]
    facts.write_text("\n".join(empty))
    judge = strict.load()
    judge(little(*range(FIRST_PAGES)))
    judge.learn()
    assert not judge(sources(50))[0].model


def test_answers_about_no_page_leave_a_blind_pack_blind(strict):
    judge = strict.load()
    judge(little(*range(FIRST_PAGES)))
    judge.learn()
    judge._holding.close()
    told(strict, {"http://elsewhere.test/": True})
    assert learn_answers(TopicFolder(strict.folder))
    assert strict.load()(sources(50))[0].probability > judge._trained.threshold


def test_topic_that_is_held_is_learned_when_it_is_free(strict):
    judge = strict.load()
    strict.folder.mkdir()
    with TopicFolder(strict.folder).held():
        judge(little(*range(FIRST_PAGES)))
        judge.learn()
        assert judge._learner is None
    judge.learn()
    assert judge(sources(50))[0].model


def test_pages_that_are_known_are_kept_once(strict):
    judge = strict.load()
    judge(sources(*range(20)))
    folder = TopicFolder(strict.folder)
    folder.path.mkdir()
    begin_topic(folder, "food", judge._trained)
    pages = [page(number) for number in range(20)]
    folder.keep_pages(
        (n, str(n), PageWords(each.url, each.title, "", text_of(each).counts(), prior=0.0))
        for n, each in enumerate(pages, 1)
    )
    judge(little(20, 21))
    judge.learn()
    urls = [each.url for *_, each in folder.read_pages()]
    assert len(urls) == len(set(urls)) == 22


def test_blind_pack_stays_blind_whatever_is_answered(strict):
    judge = strict.load()
    judge(little(*range(FIRST_PAGES)))
    judge.learn()
    told(strict, {page(number).url: False for number in range(0, FIRST_PAGES, 2)})
    judge_more(judge, [])
    fit = judge._learner._fit
    assert fit.mean_prior is not None
    assert judge(sources(50))[0].probability < judge._trained.threshold
    told(strict, {page(number).url: True for number in range(0, FIRST_PAGES, 2)})
    judge_more(judge, [])
    assert judge(sources(50))[0].probability > judge._trained.threshold


def test_own_judge_is_not_doubted_in_an_old_folder(strict, tmp_path, monkeypatch):
    (tmp_path / "never.py").write_text("def judge(pages):\n    return [0.0] * len(pages)\n")
    monkeypatch.syspath_prepend(tmp_path)
    judge = strict.load()
    judge(little(*range(FIRST_PAGES)))
    judge.learn()
    judge._holding.close()
    own = replace(strict, own_judge="never:judge").load()
    own(little(*range(50, 70)))
    own.learn()
    assert own(sources(0))[0].probability == 0.0


def test_threshold_of_the_pack_is_known_after_the_crawl(tmp_path):
    folder, pack = TopicFolder(tmp_path), load_packs([packs()["food"]])
    begin_topic(folder, "food", pack)
    assert TopicLearner(tmp_path, "food", keywords_of(pack))._edge == odds_of(pack.threshold)


def test_topic_from_keywords_of_before_goes_on(tmp_path):
    """Its folder once said that there is no edge."""
    folder = TopicFolder(tmp_path)
    open_topic("soup", KEYWORDS, tmp_path)
    folder.write_state({"edge": None})
    found = TopicLearner(tmp_path, "soup", KEYWORDS)
    for number in range(20):
        found.keep(page(number), fingerprint(page(number)))
    found.learn()
    assert found.take_notes()
