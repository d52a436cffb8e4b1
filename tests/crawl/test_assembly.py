from types import SimpleNamespace

import numpy as np
import pytest
from judged import judged

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.crawl.assembly import make_crawl, require_packs
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.links.model import NO_PRIOR

PACK = SimpleNamespace(given=(), link_prior=NO_PRIOR, judged_by="", threshold=0.5, language="")


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
    crawl = make_crawl(config, PACK)
    crawl.add_seeds(Outlinks(["http://a.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    assert crawl.book(crawl.next().row, judged(False), Outlinks()).experience.reward == reward


def test_policy_of_another_module_is_made():
    config = Config.from_settings({"TRES_TOPIC": "food", "TRES_POLICY": "rivals:OPIC"})
    assert type(make_crawl(config, PACK).policy).__name__ == "OpicPolicy"


def test_policy_without_its_pack_is_refused(tmp_path):
    (tmp_path / "food").mkdir()
    (tmp_path / "food" / "topic.toml").touch()
    settings = {"TRES_TOPIC": "food", "TRES_POLICY": "rivals:ACHE", "TRES_MODELS": str(tmp_path)}
    with pytest.raises(ConfigError, match="needs the pack 'food-svm', which is not in"):
        require_packs(Config.from_settings(settings))


def test_policy_without_its_input_is_refused():
    config = Config.from_settings({"TRES_TOPIC": "food", "TRES_POLICY": "rivals:LOOKAHEAD"})
    with pytest.raises(ConfigError, match="rivals:LOOKAHEAD"):
        make_crawl(config, PACK)
