"""What a crawl from keywords does before it starts."""

from dataclasses import replace

import pytest

from tres_scrapy.config.config import Config, WordOptions
from tres_scrapy.config.output import WatchOptions
from tres_scrapy.extensions.topic_source import new_folder, task_of
from tres_scrapy.run.journal import Journal
from tres_scrapy.topic.pack import load_packs
from tres_scrapy.topic.shipped import packs
from tres_scrapy.topic.topic_folder import TopicFolder
from tres_scrapy.topic.topic_learner import begin_topic
from tres_scrapy.url.message import TresError


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "other.txt"
    file.write_text("football\n")
    return Config(words=WordOptions(file))


def test_mistaken_jobdir_is_untouched(config, tmp_path):
    Journal.open(tmp_path / "tea", {"topic": "tea"}).close()
    with pytest.raises(TresError, match="a crawl with topic 'tea', not 'other'"):
        task_of(config, tmp_path / "a.jsonl", str(tmp_path / "tea"))
    assert not (tmp_path / "tea" / "topic").exists()


def test_mistaken_jobdir_gets_no_answers(tmp_path):
    Journal.open(tmp_path / "tea", {"topic": "tea"}).close()
    with pytest.raises(TresError, match="a crawl with topic 'tea', not 'sports'"):
        task_of(Config(topic="sports"), tmp_path / "a.jsonl", str(tmp_path / "tea"))


def test_answers_about_another_topic_do_not_count(tmp_path):
    (tmp_path / "a.topic").mkdir()
    food = load_packs([packs()["food"]], lazily=True)
    begin_topic(TopicFolder(tmp_path / "a.topic"), "food", food)
    assert task_of(Config(topic="food"), tmp_path / "a.jsonl", None).name == "food"
    with pytest.raises(TresError, match="holds what a crawl with topic 'food' learned"):
        task_of(Config(topic="sports"), tmp_path / "a.jsonl", None)


def test_only_a_crawl_that_keeps_something_doubts_its_pack(tmp_path):
    silent = Config(topic="food", watch=WatchOptions(record=False))
    output = tmp_path / "a.jsonl"
    assert task_of(Config(topic="food"), output, None).doubts
    assert not task_of(silent, output, None).doubts
    assert task_of(silent, output, str(tmp_path / "job")).doubts


def test_topic_of_earlier_crawl_is_not_new(config, tmp_path):
    output = tmp_path / "a.jsonl"
    assert new_folder(output, None) == tmp_path / "a.topic"
    assert new_folder(output, str(tmp_path)) is None
    (tmp_path / "a.topic").mkdir()
    assert new_folder(output, None) is None


def test_policy_with_a_classifier_needs_a_pack(config, tmp_path):
    config = replace(config, policy="rivals:ACHE")
    with pytest.raises(TresError, match=r"'rivals:ACHE' needs a trained pack, .* policy 'tres'"):
        task_of(config, tmp_path / "a.jsonl", None)
