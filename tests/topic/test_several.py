"""Several topics in one crawl."""

import numpy as np
import pytest

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.crawl.assembly import require_packs
from tres_scrapy.links.model import LinkPrior
from tres_scrapy.page.text import Link, Page
from tres_scrapy.topic.classifier import Calibration
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack, Topics

WORDS = {"soup": ("food", 0.2), "goal": ("sports", 0.8)}


class Words:
    """Is 3 sure that a text with its word is relevant, and -3 otherwise."""

    def __init__(self, word):
        self._word = word

    def logits(self, texts):
        return np.array([3.0 if self._word in text.words else -3.0 for text in texts])


@pytest.fixture
def topics():
    return Topics(
        [
            Pack(
                name,
                threshold=threshold,
                keywords=KeywordSet([word]),
                classifier=Words(word),
                calibration=Calibration(1.0, 0.0),
                language="en",
                given=[word],
            )
            for word, (name, threshold) in WORDS.items()
        ]
    )


def page(text, *anchors):
    links = [Link(f"http://a.test/{number}", anchor) for number, anchor in enumerate(anchors)]
    return Page("http://a.test/", "", text, tuple(links))


def test_any_topic_makes_a_page_relevant(topics):
    judged = topics.judge([page("soup"), page("goal"), page("tax")])
    assert [each.probability >= topics.threshold for each in judged] == [True, True, False]
    assert [list(each.scores) for each in judged] == [["food", "sports"]] * 3
    first = judged[0].scores
    assert first["food"] == judged[0].probability > topics.threshold > first["sports"]


def test_thresholds_meet(topics):
    for pack in topics._packs:
        pack.calibration = Calibration(0.0, float(np.log(pack.threshold / (1 - pack.threshold))))
    assert topics.judge([page("tax")])[0].scores == pytest.approx({"food": 0.5, "sports": 0.5})


def test_links_have_keywords_of_any_topic(topics):
    (judged,) = topics.judge([page("tax", "a soup", "a goal", "a law")])
    assert judged.actions[:, 1].tolist() == [1, 1, 0]
    assert judged.actions[:2, 2].min() > judged.actions[2, 2]


def test_link_says_the_best_of_any_topic(topics):
    food, sports = topics._packs
    food.link_prior = LinkPrior(np.array([3, 9], np.uint32), np.array([1, -1], np.float32))
    sports.link_prior = LinkPrior(np.array([9, 2], np.uint32), np.array([2, -4], np.float32))
    found = Topics([food, sports]).link_prior
    assert dict(zip(found.codes.tolist(), found.weights.tolist(), strict=True)) == {
        2: 0,
        3: 1,
        9: 2,
    }


def test_pack_of_each_topic_is_required():
    config = Config(topic="food+sports")
    assert [place.name for place in require_packs(config)] == ["food", "sports"]
    with pytest.raises(ConfigError, match="unknown topic 'fod'; did you mean food"):
        require_packs(Config(topic="sports+fod"))


def test_topics_are_separated_by_commas():
    assert Config.from_settings({"TRES_TOPIC": "food, sports,food"}).topics == ("food", "sports")
    with pytest.raises(ConfigError, match="must be letters"):
        Config.from_settings({"TRES_TOPIC": "food,../x"})


@pytest.mark.parametrize("more", [{"TRES_JUDGE": "a:b"}, {"TRES_KEYWORDS": "tea.txt"}])
def test_several_topics_need_packs(more):
    with pytest.raises(ConfigError, match="judged by their packs: give one topic, or leave"):
        Config.from_settings({"TRES_TOPIC": "food,sports"} | more)
