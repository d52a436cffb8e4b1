"""Options of downloading: politeness, safety, hosts that fail, and pages opened in a browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import contact, flag, number, one_of

NEVER, AUTO, ALWAYS = "never", "auto", "always"


@dataclass(frozen=True)
class DownloadOptions:
    """Options that protect hosts from the crawl, and this machine from dangerous links."""

    contact: str | None = setting(
        contact,
        None,
        "mail address or URL by which the owners of sites reach you, added to `USER_AGENT`",
        see="manners.md",
    )
    max_crawl_delay: float = setting(
        number(0, 86400),
        30.0,
        "seconds; hosts whose robots.txt asks for a longer delay are skipped",
    )
    private_addresses: bool = setting(
        flag, False, "allow links to this machine, its private network and its files"
    )
    identity: Path | None = setting(
        Path,
        None,
        "key file of `tres identity new`: sign each request with it; unset: requests are unsigned",
        see="identity.md",
    )


@dataclass(frozen=True)
class RestOptions:
    """How a host that fails rests, and what happens when no host answers any more."""

    first: float = setting(
        number(0.001, 3600),
        15.0,
        "seconds that a host rests after a 429, a 5xx or no answer; doubled while it fails",
        name="rest",
    )
    longest: float = 3600.0  # most seconds of a rest, also of a Retry-After
    most: int = 6  # in a row, then a host is given up; half as many if it has never answered
    unreachable: int = 10  # domains in a row whose hosts failed: then the network is checked
    outage: float = setting(
        number(0, 604800),
        1800.0,
        "seconds to wait for a network that is gone before the crawl ends",
        name="max_outage",
    )
    new_hosts: float = 0.25  # share of CONCURRENT_REQUESTS for hosts that never answered


@dataclass(frozen=True)
class RenderOptions:
    """Which pages are rendered, by which browser, and for how long."""

    mode: str = setting(
        one_of(NEVER, AUTO, ALWAYS),
        NEVER,
        "which pages to open in a browser; auto: those that are empty without scripts",
        name="render",
    )
    browser: Path | None = setting(Path, None, "path of Chromium; unset: search for it")
    browser_sandbox: bool | None = setting(
        flag,
        None,
        "use Chromium's sandbox; unset: yes, except as root, where it cannot run",
    )
    idle: float = setting(
        number(0, 60),
        5.0,
        "further seconds to wait until the page stops making requests; 0: do not wait",
        name="render_idle",
    )
    pages: int = 4  # most pages open in the browser at once
