from collections import Counter
from dataclasses import replace

import pytest
from soup import FOOD, OTHER

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.copies import SKETCH, fingerprint
from tres_scrapy.page.text import read_page
from tres_scrapy.topic import topic_learner
from tres_scrapy.topic.judge import Source
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.learning_judge import LearningTask
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers
from tres_scrapy.topic.topic_learner import TopicLearner, learn_answers, open_topic
from tres_scrapy.url.message import TresError

KEYWORDS = KeywordSet.parse(["food", "cooking", "recipe", "soup", "bread"])
WORDS = [a + b for a in ("leek", "pea", "bean", "beet") for b in "abcdefghijklmnopqrst"]


def page(number):
    html = (FOOD if number % 2 == 0 else OTHER).format(f"{WORDS[number]} {WORDS[-number]}")
    return read_page(html * 2, f"http://h{number}.test/")


def learner(path):
    open_topic("soup", KEYWORDS, path)
    return TopicLearner(path, "soup", KEYWORDS)


def learn(learner, *numbers):
    for number in numbers:
        learner.keep(page(number), fingerprint(page(number)), is_seed=number == 0)
        learner.learn()


def answer(learner, answers):
    add_answers(learner.folder.answers, answers)
    learner.learn()


def pack_of(path):
    return {file.name: file.read_bytes() for file in (path / "pack").iterdir()}


@pytest.mark.parametrize("killed_after", [0, 1, 13, 25])
@pytest.mark.long
def test_resumed_topic_learns_the_same(tmp_path, killed_after):
    learn(learner(tmp_path / "whole"), *range(40))
    learn(learner(tmp_path / "killed"), *range(killed_after))
    learn(learner(tmp_path / "killed"), *range(max(0, killed_after - 1), 40))  # one page again
    assert pack_of(tmp_path / "killed") == pack_of(tmp_path / "whole")


def test_waiting_links_are_described_by_the_model_of_now(tmp_path):
    first = learner(tmp_path)  # it makes the topic
    learn(first, *range(10))
    words = tuple(KEYWORDS.words)
    task = LearningTask(tmp_path, ReadingLimits(), folder=tmp_path, name="soup", keywords=words)
    judge = task.load()
    pages = [Source(page(number).text.encode(), f"http://x{number}.test/") for number in (1, 2)]
    waiting = (("http://y.test/", "leek soup with bread"), ("http://z.test/", "football"))
    before, bare = judge([pages[0]._replace(waiting=waiting), pages[1]])
    judge([Source(page(number).text.encode(), page(number).url) for number in range(10, 30)])
    judge.learn()
    (after,) = judge([pages[0]._replace(waiting=waiting)])
    assert before.model == bare.model != after.model
    assert bare.described is None
    assert before.described.shape == after.described.shape == (2, 3)
    assert before.described[0, 2] != after.described[0, 2] > after.described[1, 2]


def test_earlier_pages_are_judged_by_the_model_of_now(tmp_path):
    first = learner(tmp_path)
    learn(first, *range(10))
    before = first.again()
    learn(first, *range(10, 30))
    after = first.again()
    killed = learner(tmp_path).again()
    assert {mark: killed[mark] for mark in after} == pytest.approx(after, abs=1e-5)
    marks = [fingerprint(page(number))[:SKETCH].hex() for number in range(30)]
    assert list(after) == marks[: len(after)]
    assert len(after) > 20
    assert [after[mark] for mark in marks[:10]] != [before[mark] for mark in marks[:10]]
    own = Pack.load(tmp_path / "pack").judge([page(number) for number in range(30)])
    own = [each.probability for each in own[: len(after)]]
    assert list(after.values()) == pytest.approx(own, abs=1e-5)
    task = LearningTask(tmp_path, ReadingLimits(), folder=tmp_path, name="soup", keywords=("soup",))
    judge = task.load()
    source = Source(page(1).text.encode(), "http://x.test/")
    told, silent = judge([source._replace(again=True), source])
    assert {mark: told.again[mark] for mark in after} == pytest.approx(after)
    assert not silent.again


def test_answer_leads_to_a_new_fit(tmp_path):
    mine = learner(tmp_path)
    learn(mine, *range(12))
    before = pack_of(tmp_path)
    asked = [sheet.url for sheet, *_ in mine.questions(4)]
    answer(mine, {asked[0]: True, asked[1]: False})
    assert pack_of(tmp_path) != before
    assert len(mine.known_answers) == 2
    assert asked[0] not in TopicFolder(tmp_path).questions.read_text(encoding="utf-8")
    said = mine.take_notes()[-1]
    assert "2 answers; by the answers, precision is" in said
    assert " more, " in said
    assert said.endswith(" fewer")


def test_unknown_precision_is_said_once(tmp_path):
    mine = learner(tmp_path)
    for number in range(40):
        learn(mine, number)
    said = [note for note in mine.take_notes() if note.startswith("learned from")]
    unknown = "precision and recall are unknown without answers"
    assert len(said) > 1
    assert [unknown in note for note in said] == [True] + [False] * (len(said) - 1)


def test_wrong_line_is_left_out(tmp_path):
    mine = learner(tmp_path)
    learn(mine, *range(12))
    answer(mine, {"http://h0.test/": True})
    with (tmp_path / "answers.txt").open("a", encoding="utf-8") as file:
        file.write("perhaps http://h1.test/\nno http://h3.test/\n")
    for _ in range(2):
        mine.learn()
    assert mine.known_answers == {"http://h0.test/": True, "http://h3.test/": False}
    assert len([note for note in mine.take_notes() if "line 2" in note]) == 1


def test_missing_file_keeps_its_answers(tmp_path):
    named = tmp_path / "mine.txt"
    named.write_text("yes http://h0.test/\n")
    learner(tmp_path)
    mine = TopicLearner(tmp_path, "soup", KEYWORDS, answers=named)
    learn(mine, *range(3))
    assert len(mine.known_answers) == 1
    named.unlink()
    mine.learn()
    assert len(mine.known_answers) == 1
    assert "mine.txt' is missing" in mine.take_notes()[-1]
    with pytest.raises(TresError, match="is missing, its answers were learned"):
        learn_answers(TopicFolder(tmp_path))
    moved = tmp_path / "moved.txt"
    moved.write_text("yes http://h0.test/\n")
    TopicLearner(tmp_path, "soup", KEYWORDS, answers=moved)  # a resumed crawl
    assert learn_answers(TopicFolder(tmp_path)) == []


def test_all_answers_no_is_said(tmp_path):
    mine = learner(tmp_path)
    learn(mine, *range(12))
    answer(mine, {"http://h0.test/": False})
    assert "all answers are no" in mine.take_notes()[-1]


def test_all_answers_yes_is_said(tmp_path):
    mine = learner(tmp_path)
    learn(mine, *range(12))
    answer(mine, {f"http://h{number}.test/": True for number in range(6)})
    assert "all answers are yes: answer no for one page" in mine.take_notes()[-1]


def test_answers_about_pages_never_fetched_are_said(tmp_path):
    mine = learner(tmp_path)
    learn(mine, *range(12))
    answer(mine, {"http://strange.test/": True, "http://h0.test/": True, "http://h1.test/": False})
    said = "1 answer about pages that were not fetched yet, or not kept, the first is"
    assert any(note.startswith(f"{said} http://strange.test/") for note in mine.take_notes())
    answer(mine, {"http://h2.test/": True})
    assert not any("not fetched yet" in note for note in mine.take_notes())


@pytest.mark.long
def test_yes_and_no_for_a_page_is_said(tmp_path):
    mine = learner(tmp_path)
    learn(mine, *range(12))
    answer(mine, {"http://h0.test/": True})
    answer(mine, {"http://h0.test/": False})
    said = "yes and no for 1 URL, the first is http://h0.test/; the last line about each counts"
    assert any(said in note for note in mine.take_notes())


def test_seed_without_text_is_said(tmp_path):
    mine = learner(tmp_path)
    mine.keep(replace(page(0), title="", text=""), b"", is_seed=True)
    assert mine.take_notes() == (
        "the seed http://h0.test/ has no text: the topic starts from its keywords alone",
    )


@pytest.mark.long
def test_kept_pages_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(topic_learner, "MAX_PAGES", 10)
    mine = learner(tmp_path)
    (tmp_path / "answers.txt").write_text("yes http://h3.test/\n", encoding="utf-8")
    learn(mine, *range(40))
    kept = [sheet.url for *_, sheet in TopicFolder(tmp_path).read_pages()]
    assert len(kept) < 24
    assert Counter(kept)["http://h0.test/"] == Counter(kept)["http://h3.test/"] == 1


@pytest.mark.long
def test_start_without_relevant_pages_is_said_once(tmp_path):
    mine = learner(tmp_path)
    learn(mine, *range(1, 80, 2))
    hardly = [note for note in mine.take_notes() if "fits the keywords" in note]
    assert len(hardly) == 1
    assert hardly[0].startswith("hardly any of ")
    learn(mine, *range(0, 80, 2))
    assert "fits the keywords" not in " ".join(mine.take_notes())


@pytest.mark.long
def test_edited_keywords_count_at_once(tmp_path):
    learn(learner(tmp_path), *range(12))
    others = KeywordSet.parse(["football", "goal", "league"])
    assert not open_topic("soup", KEYWORDS, tmp_path)[0]
    assert open_topic("soup", others, tmp_path)[0]  # made again
    mine = TopicLearner(tmp_path, "soup", others)
    assert set(mine.pack.given) == others.words
    assert not mine.pack.keywords.in_text("a recipe of soup")
    mine.learn()
    assert set(mine.pack.given) == others.words
    assert not KEYWORDS.words & mine.pack.keywords.words


def test_full_disk_does_not_end_a_crawl(tmp_path, monkeypatch):
    mine = learner(tmp_path)
    learn(mine, *range(5))
    before, _ = mine.pack, mine.take_notes()

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(TopicFolder, "write_pack", full)
    monkeypatch.setattr(TopicFolder, "add_page", full)
    monkeypatch.setattr(TopicFolder, "keep_pages", full)
    monkeypatch.setattr(topic_learner, "MAX_PAGES", 10)
    learn(mine, *range(5, 40))
    notes = mine.take_notes()
    assert "cannot keep pages: No space left on device" in notes
    assert mine.pack is before
    assert "cannot keep what was learned: No space left on device" in notes
    assert 0 < sum(note.startswith("cannot keep what") for note in notes) < 5
