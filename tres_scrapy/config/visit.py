"""When sites are crawled, how many requests they get a day, and exceptions for single sites."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import file_of, hosts, whole

DAY: Final = 86_400  # seconds
TIMES: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|24:00)")
ALWAYS, UNLIMITED = "always", "unlimited"
NO_LIMIT: Final = 2**31 - 1  # requests a day
PER_DAY: Final = whole(2, NO_LIMIT)  # robots.txt is one of them


class Hours(NamedTuple):
    """Hours of each day in UTC, as seconds of the day; over midnight if `first` is later."""

    first: int = 0
    last: int = DAY

    @classmethod
    def parse(cls, text: str) -> Hours:
        """Read 22:00-06:00 or always; raise ValueError for anything else."""
        found = TIMES.fullmatch(text)
        if text != ALWAYS and (found is None or found.group(1, 2) == found.group(3, 4)):
            raise ValueError("must be hours in UTC such as 22:00-06:00, or always")
        if found is None:
            return cls()
        hour, minute, *last = found.groups()
        end = DAY if None in last else 3600 * int(last[0]) + 60 * int(last[1])
        return cls(3600 * int(hour) + 60 * int(minute), end)

    def __str__(self) -> str:
        if self == Hours():
            return ALWAYS
        return "-".join(f"{time // 3600:02}:{time % 3600 // 60:02}" for time in self)

    def begin_in(self, now: float) -> float:
        """Return in how many seconds these hours begin, 0 within them; `now` is since 1970."""
        second = now % DAY
        if self.first < self.last:
            within = self.first <= second < self.last
        else:
            within = second >= self.first or second < self.last
        return 0.0 if within else (self.first - second) % DAY


class SiteRule(NamedTuple):
    """The hours and the requests a day of one site; None is what all sites have."""

    site: str
    hours: Hours | None = None
    per_day: int | None = None

    @classmethod
    def parse(cls, line: str) -> SiteRule:
        """Read `example.org 22:00-06:00 500`, with `always` and `unlimited` for no limit."""
        site, *words = line.split()
        (host,) = hosts("" if site.startswith("@") else site)
        times = [word for word in words if ":" in word or word == ALWAYS]
        counts = [word for word in words if word not in times]
        if not words or max(len(times), len(counts)) > 1:
            raise ValueError
        hours = Hours.parse(times[0]) if times else None
        if not counts:
            return cls(host, hours)
        return cls(host, hours, NO_LIMIT if counts[0] == UNLIMITED else PER_DAY(counts[0]))

    def __str__(self) -> str:
        count = UNLIMITED if self.per_day == NO_LIMIT else self.per_day
        return " ".join(str(each) for each in (self.site, self.hours, count) if each is not None)


site_rules = file_of(SiteRule.parse, "example.org 22:00-06:00 500")


@dataclass(frozen=True)
class VisitOptions:
    """When sites are asked, and how often a day; a site is a registrable domain."""

    hours: Hours | None = setting(
        Hours.parse,
        None,
        "hours of the day in UTC at which sites are crawled, such as 22:00-06:00; unset: always",
        name="crawl_between",
        see="manners.md",
    )
    per_day: int | None = setting(
        PER_DAY,
        None,
        "most requests a day (UTC) to one site, robots.txt included; unset: no limit",
        name="max_per_day",
        see="manners.md",
    )
    sites: tuple[SiteRule, ...] = setting(
        site_rules,
        (),
        "hours and requests a day of single sites, instead of the two above: a file of lines such "
        "as `example.org 22:00-06:00 500`, with `always` or `unlimited` for no limit",
        name="site_rules",
        see="manners.md",
    )

    @property
    def are_limited(self) -> bool:
        """Whether any site has hours or a number of requests a day."""
        return self != VisitOptions()
