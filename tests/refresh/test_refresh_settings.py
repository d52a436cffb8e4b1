import pytest
from scrapy.settings import Settings

from tres_scrapy.config.config import Config, ConfigError
from tres_scrapy.config.parser import duration
from tres_scrapy.refresh.settings import RefreshConfig, apply_refresh_arguments


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("1.5h", 5_400), ("1d", 86_400), ("2w", 1_209_600)],
)
def test_times_are_read(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1 d", "1y", "inf"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="must be a time such as"):
        duration(text)


def test_arguments_are_refresh_or_shared():
    settings = Settings()
    given = {"collection": "c.jsonl", "budget": "7", "horizon": "2h", "random_seed": "3"}
    apply_refresh_arguments(settings, given)
    config = RefreshConfig.from_settings(settings)
    shared = Config.from_settings(settings)
    options = config.options(100, shared)
    assert (options.budget, options.horizon, options.seed) == (7, 7_200, 3)
    assert str(config.beside(config.store, "sqlite")) == "c.refresh.sqlite"


def test_budget_defaults_to_page_count():
    assert RefreshConfig().options(100, Config()).budget == 100


def test_misspelt_settings_and_arguments_are_refused():
    with pytest.raises(ConfigError, match="did you mean TRES_REFRESH_BUDGET"):
        RefreshConfig.from_settings(Settings({"TRES_REFRESH_BUDGTE": 1}))
    with pytest.raises(ConfigError, match="unknown argument -a topic"):
        apply_refresh_arguments(Settings(), {"topic": "food"})
    with pytest.raises(ConfigError, match=r"TRES_REFRESH_GRACE \(-a grace=\) '0'"):
        RefreshConfig.from_settings(Settings({"TRES_REFRESH_GRACE": 0}))
