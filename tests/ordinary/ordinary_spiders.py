"""All ordinary spiders, by name, and two slow ones that benchmarks/embedded.py times."""

from __future__ import annotations

from types import ModuleType

import api_spiders
import engine_spiders
import failing_spiders
import following_spiders
import reused_spiders
import setting_spiders
import slow_spiders
from local_spider import Local

MODULES = (
    following_spiders,
    api_spiders,
    failing_spiders,
    setting_spiders,
    engine_spiders,
    reused_spiders,
)


def spiders_of(*modules: ModuleType) -> dict[str, type[Local]]:
    """Return the spiders with a name in modules."""
    return {
        spider.name: spider
        for module in modules
        for spider in vars(module).values()
        if isinstance(spider, type) and issubclass(spider, Local) and spider.name
    }


SPIDERS = spiders_of(*MODULES)
SLOW = spiders_of(slow_spiders)
