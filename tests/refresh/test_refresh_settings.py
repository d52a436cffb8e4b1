import pytest
from scrapy.settings import Settings

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.option import apply_arguments
from tres_scrapy.config.parser import duration
from tres_scrapy.refresh.settings import RefreshConfig


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("1.5h", 5_400), ("1d", 86_400), ("2w", 1_209_600)],
)
def test_times_are_read(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1 d", "1y", "inf"])
def test_wrong_time_is_refused(text):
    with pytest.raises(ValueError, match="must be a time such as"):
        duration(text)


def test_arguments_are_own_and_shared():
    settings = Settings()
    given = {"collection": "c.jsonl", "budget": "7", "horizon": "2h", "random_seed": "3"}
    apply_arguments(settings, given, RefreshConfig.arguments())
    config = RefreshConfig.of(settings)
    options = config.options(100, Config.of(settings))
    assert (options.budget, options.horizon, options.seed) == (7, 7_200, 3)
    assert str(config.beside(config.store, "sqlite")) == "c.refresh.sqlite"


def test_budget_defaults_to_pages():
    assert RefreshConfig().options(100, Config()).budget == 100


def test_misspelt_settings_are_refused():
    with pytest.raises(ConfigError, match="did you mean TRES_REFRESH_BUDGET"):
        RefreshConfig.from_settings({"TRES_REFRESH_BUDGTE": 1})
    with pytest.raises(ConfigError, match="unknown argument -a topic"):
        apply_arguments(Settings(), {"topic": "food"}, RefreshConfig.arguments())
    with pytest.raises(ConfigError, match=r"TRES_REFRESH_BUDGET \(-a budget=\) '0'"):
        RefreshConfig.from_settings({"TRES_REFRESH_BUDGET": 0})
