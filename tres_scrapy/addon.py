"""The add-on that turns a Scrapy project into a focused crawler."""

from __future__ import annotations

from typing import Any

from scrapy.settings import BaseSettings

from tres_scrapy.extensions.learner import Learner
from tres_scrapy.extensions.offline_web import OfflineWeb
from tres_scrapy.extensions.progress import Progress
from tres_scrapy.extensions.robots import Robots
from tres_scrapy.middlewares.offline_proxy import OfflineProxyMiddleware
from tres_scrapy.middlewares.reward import RewardMiddleware
from tres_scrapy.middlewares.robots_txt import wait_for_robots
from tres_scrapy.pipelines import JsonLinesPipeline
from tres_scrapy.scheduler import TreeFrontierScheduler

COMPONENTS: dict[str, dict[type, int]] = {
    "SPIDER_MIDDLEWARES": {RewardMiddleware: 10},  # before HttpError, which hides failures
    "DOWNLOADER_MIDDLEWARES": {OfflineProxyMiddleware: 10},
    "ITEM_PIPELINES": {JsonLinesPipeline: 900},
    "EXTENSIONS": {OfflineWeb: 100, Learner: 110, Progress: 120, Robots: 130},
}
# A web on this machine needs no manners.
OFFLINE: dict[str, Any] = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}


class TresAddon:
    """Installs the scheduler, the reward middleware, the extensions and the pipeline."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set("SCHEDULER", TreeFrontierScheduler, "addon")
        for name, components in COMPONENTS.items():
            for component, order in components.items():
                settings.setdefault_in_component_priority_dict(name, component, order)
        wait_for_robots(settings)
        if settings.get("TRES_WEB"):
            for name, value in OFFLINE.items():
                settings.set(name, value, "project")  # over the project's, under the user's -s
