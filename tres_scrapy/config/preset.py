"""The preset: one setting, TRES_PRESET, that sets departures from the paper back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tres_scrapy.config.declaration import PREFIX

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PRESET: Final = f"{PREFIX}PRESET"
PAPER: Final = "paper"  # all departures
# docs/paper.md names each in its table of departures; a test compares the two.
SETTINGS: Final[Mapping[str, str]] = {
    "TRES_LINK_MODEL": "0",
    "TRES_BREADTH": "0",
    "TRES_MAX_FAILURES": "1000000",
    "TRES_OBEY_NOFOLLOW": "0",
    "CONCURRENT_REQUESTS": "1",
}
# Departures that are no settings: the part of Config that holds the field, and the paper's value.
DEPARTURES: Final[Mapping[str, tuple[str, Any]]] = {
    "representatives": ("learning", 1),
    "exploration_steps": ("learning", 500),
    "learning_starts": ("learning", 500),
    "update_period": ("learning", 3),
    "batch_size": ("learning", 60),
    "learning_rate_floor": ("agent", 0.0),
    "bucketed": ("tree", True),
    "detect_copies": ("", False),
    "domain_prior": ("", 0.0),
    "domain_inlinks": ("", False),
    "trusted_seeds": ("", True),
}


def preset_of(settings: Mapping[Any, Any]) -> Mapping[str, str]:
    """Return the values that the preset gives to settings that are not set; none without it."""
    names = str(settings.get(PRESET)).split(",")
    return SETTINGS if PAPER in map(str.strip, names) else {}


def set_scrapys(settings: BaseSettings) -> None:
    """Set the values that the preset gives to Scrapy's own settings, below all that are set."""
    for name, value in preset_of(settings).items():
        if not name.startswith(PREFIX):
            settings.set(name, value, "addon")
