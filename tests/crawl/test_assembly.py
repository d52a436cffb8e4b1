from types import SimpleNamespace

import numpy as np
import pytest
from judged import judged

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.assembly import make_crawl
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.links.model import NO_PRIOR


@pytest.mark.parametrize(
    ("settings", "reward"),
    [
        ({}, 0.0),
        ({"TRES_PRESET": "trusted_seeds"}, 1.0),
        ({"TRES_PRESET": "paper"}, 1.0),
        ({"TRES_PRESET": "batch_size,bucketed"}, 0.0),
    ],
)
def test_settings_decide_on_an_irrelevant_seed(settings, reward):
    config = Config.from_settings({"TRES_TOPIC": "food"} | settings)
    pack = SimpleNamespace(given=(), link_prior=NO_PRIOR, judged_by="", threshold=0.5, language="")
    crawl = make_crawl(config, pack)
    crawl.add_seeds(Outlinks(["http://a.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    assert crawl.book(crawl.next().row, judged(False), Outlinks()).experience.reward == reward
