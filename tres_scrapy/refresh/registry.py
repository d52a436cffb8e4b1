"""The policies of `scrapy crawl refresh` by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tres_scrapy.config.guest import offered
from tres_scrapy.refresh.interval import StaticPolicy
from tres_scrapy.refresh.page_policy import PagePolicy, PolicySetup

POLICIES: Final[dict[str, Callable[[PolicySetup], PagePolicy]]] = {
    "static": lambda setup: StaticPolicy(setup.pages, setup.pace, setup.bounds, setup.seed),
    **{name: make for more in offered("refresh_policies") for name, make in more.items()},
}
