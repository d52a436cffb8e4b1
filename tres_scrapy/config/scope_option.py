"""Options of scope: which links a crawl follows."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import hosts, languages, patterns, whole


@dataclass(frozen=True)
class ScopeOptions:
    """Rules that a link must satisfy to enter the frontier; seeds are exempt."""

    allow: tuple[str, ...] = setting(
        patterns,
        (),
        "regular expression: follow only links whose URL it matches; @FILE: one a line",
    )
    deny: tuple[str, ...] = setting(
        patterns,
        (),
        "regular expression: follow no link whose URL it matches; @FILE: one a line",
    )
    allowed_domains: tuple[str, ...] = setting(
        hosts, (), "follow only links to these domains and suffixes, and their subdomains"
    )
    denied_domains: tuple[str, ...] = setting(
        hosts, (), "follow no link to these domains and suffixes, and their subdomains"
    )
    languages: tuple[str, ...] = setting(
        languages,
        (),
        "languages of relevant pages, such as en,de; a page in another one is not relevant, its "
        "links are followed; unset: any",
    )
    max_depth: int | None = setting(
        whole(1), None, "most links between a seed and a page; unset: no limit"
    )
    max_per_path: int | None = setting(
        whole(1),
        None,
        "most URLs of one directory; directories that differ only in digits are one",
    )
