"""The add-on that turns a Scrapy project into a focused crawler."""

from __future__ import annotations

from typing import Any

from scrapy.extensions.spiderstate import SpiderState
from scrapy.settings import BaseSettings

from tres_scrapy.extensions.learner import Learner
from tres_scrapy.extensions.offline_web import OfflineWeb
from tres_scrapy.extensions.progress import Progress
from tres_scrapy.extensions.robots import Robots
from tres_scrapy.middlewares.credential import CredentialMiddleware
from tres_scrapy.middlewares.offline_proxy import OfflineProxyMiddleware
from tres_scrapy.middlewares.private_address import PrivateAddressMiddleware
from tres_scrapy.middlewares.reward import RewardMiddleware
from tres_scrapy.middlewares.robots_txt import wait_for_robots
from tres_scrapy.pipelines import JsonLinesPipeline
from tres_scrapy.scheduler import TreeFrontierScheduler

COMPONENTS: dict[str, dict[type, int | None]] = {
    "SPIDER_MIDDLEWARES": {RewardMiddleware: 10},  # before HttpError, which hides failures
    "DOWNLOADER_MIDDLEWARES": {
        OfflineProxyMiddleware: 10,
        CredentialMiddleware: 755,  # behind HttpProxy, which says who resolves names
        PrivateAddressMiddleware: 760,
    },
    "ITEM_PIPELINES": {JsonLinesPipeline: 900},
    "EXTENSIONS": {
        OfflineWeb: 100,
        Learner: 110,
        Progress: 120,
        Robots: 130,
        SpiderState: None,  # it unpickles a file of JOBDIR: who wrote that could run code
    },
}
# Nothing listens for commands on the crawling machine, unless the project says so.
CLOSED: dict[str, Any] = {"REMOTE_CONTROL_ENABLED": False, "TELNETCONSOLE_ENABLED": False}
# A web on this machine needs no manners.
OFFLINE: dict[str, Any] = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}


class TresAddon:
    """Installs the scheduler, the reward middleware, the extensions and the pipeline."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set("SCHEDULER", TreeFrontierScheduler, "addon")
        for name, components in COMPONENTS.items():
            for component, order in components.items():
                settings.setdefault_in_component_priority_dict(name, component, order)
        for name, value in CLOSED.items():
            settings.set(name, value, "addon")
        wait_for_robots(settings)
        if settings.get("TRES_WEB"):
            for name, value in OFFLINE.items():
                settings.set(name, value, "project")  # over the project's, under the user's -s
