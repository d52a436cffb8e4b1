"""Presets: one setting, TRES_PRESET, that sets many others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tres_scrapy.config.declaration import PREFIX

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PRESET: Final = f"{PREFIX}PRESET"
# docs/paper.md names each setting of `paper` in its table of departures; a test compares the two.
PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "paper": {
        "TRES_REPRESENTATIVES": "1",
        "TRES_LINK_MODEL": "0",
        "TRES_UCB": "0",
        "TRES_BREADTH": "0",
        "TRES_EXPLORATION_STEPS": "500",
        "TRES_LEARNING_STARTS": "500",
        "TRES_UPDATE_PERIOD": "3",
        "TRES_LEARNING_RATE_FLOOR": "0",
        "TRES_BATCH_SIZE": "60",
        "TRES_BUCKETED_FEATURES": "1",
        "TRES_DOMAIN_PRIOR": "0",
        "TRES_DOMAIN_INLINKS": "0",
        "TRES_MAX_FAILURES": "1000000",
        "TRES_TRUSTED_SEEDS": "1",
        "TRES_DETECT_COPIES": "0",
        "TRES_OBEY_NOFOLLOW": "0",
        "TRES_PSL_PRIVATE": "0",
        "CONCURRENT_REQUESTS": "1",
    },
}


def preset_of(settings: Mapping[Any, Any]) -> Mapping[str, str]:
    """Return the values that the preset gives to settings that are not set; none without it."""
    return PRESETS.get(str(settings.get(PRESET)).strip(), {})


def set_scrapys(settings: BaseSettings) -> None:
    """Set the values that the preset gives to Scrapy's own settings, below all that are set."""
    for name, value in preset_of(settings).items():
        if not name.startswith(PREFIX):
            settings.set(name, value, "addon")
