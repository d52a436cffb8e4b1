"""All ordinary spiders, by name."""

from __future__ import annotations

import api_spiders
import engine_spiders
import failing_spiders
import following_spiders
import setting_spiders
from local_spider import Local

MODULES = (following_spiders, api_spiders, failing_spiders, setting_spiders, engine_spiders)
SPIDERS: dict[str, type[Local]] = {
    spider.name: spider
    for module in MODULES
    for spider in vars(module).values()
    if isinstance(spider, type) and issubclass(spider, Local) and spider.name
}
