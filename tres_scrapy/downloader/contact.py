"""How the owners of sites can reach whoever crawls: a contact in USER_AGENT."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.parser import CONTACT
from tres_scrapy.config.typed import typed_setting
from tres_scrapy.settings import USER_AGENT
from tres_scrapy.url.public_address import may_be_public

LONG: Final = 1_000  # pages; a crawl of more must have a contact
SCRAPYS: Final = "https://scrapy.org"  # in Scrapy's own user agent
UNUSED: Final = (".test", ".example", ".invalid")  # never names of real hosts (RFC 6761)


def has_contact(agent: str) -> bool:
    """Return whether a user agent names a mail address or a URL of its own."""
    return CONTACT.search(agent.replace(SCRAPYS, "")) is not None


def named_agent(agent: str, contact: str | None) -> str:
    """Return a user agent with a contact, unless it has this one or none is given."""
    if contact is None or contact in agent:
        return agent
    if agent == USER_AGENT:
        return f"tres-scrapy (focused crawler; +{contact})"
    return f"{agent} (+{contact})".lstrip()


def lacks_contact(agent: str, config: Config, urls: Iterable[str]) -> bool:
    """Return whether a crawl from these URLs has no contact, and any is of the real web.

    Offline webs, private addresses and names for tests need none.
    """
    return config.web.kind is None and not has_contact(agent) and any(map(_is_real, urls))


def check_contact(agent: str, config: Config, urls: Iterable[str]) -> None:
    """Raise ConfigError if a long crawl from these URLs lacks a contact."""
    is_long = config.pages is None or config.pages > LONG
    if is_long and lacks_contact(agent, config, urls):
        raise ConfigError(
            f"USER_AGENT {agent!r}: a crawl of more than {LONG:,} pages must have a contact: "
            f"add {typed_setting('contact', 'you@example.org')} (a mail address or a URL)"
        )


def set_contact(settings: BaseSettings) -> None:
    """Put the contact of a crawl into its USER_AGENT."""
    agent = named_agent(settings["USER_AGENT"] or "", Config.of(settings).download.contact)
    settings.set("USER_AGENT", agent, settings.getpriority("USER_AGENT") or "addon")


def _is_real(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return may_be_public(host) and not host.rstrip(".").endswith(UNUSED)
