"""The map of the sites: circles on rings, and the links that the crawl followed between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import Final

from tres_scrapy.publish.collection import Collection, Site

SHOWN: Final = 40  # sites on the map
SIDE: Final = 720.0  # of the square
INNER: Final = 10  # sites on the inner ring
RADII: Final = 60.0, 190.0, 310.0  # of the rings; the first one has sites without pages
HUBS: Final = 4  # sites that are not relevant themselves and lead to most relevant pages


@dataclass(frozen=True)
class Dot:
    """A site on the map: middle, radius, and whether its name has room."""

    site: Site
    x: float
    y: float
    r: float
    is_named: bool


@dataclass(frozen=True)
class Line:
    """Links between two sites: a curve through the middle of the map, and how many there are."""

    path: str
    width: float
    said: str


@dataclass(frozen=True)
class SiteMap:
    """The largest sites and the links between them."""

    dots: list[Dot]
    lines: list[Line]


def draw(collection: Collection) -> SiteMap:
    """Return the map of the largest sites of a collection."""
    shown = collection.sites[:SHOWN]
    largest = max((len(site.pages) for site in shown), default=1)
    rings = _hubs(collection), shown[:INNER], shown[INNER:]
    dots = {
        site.name: _dot(site, place / len(sites), ring, largest)
        for ring, sites in enumerate(rings)
        for place, site in enumerate(sites)
    }
    lines = [
        _line(dots[start], dots[end], count)
        for (start, end), count in sorted(collection.links.items())
        if start in dots and end in dots
    ]
    return SiteMap([*dots.values()], lines)


def _hubs(collection: Collection) -> list[Site]:
    """Return the sites without relevant pages that lead to the most of other sites."""
    known, count = {site.name for site in collection.sites}, Counter[str]()
    for (start, _), links in collection.links.items():
        if start not in known:
            count[start] += links
    return [Site(name) for name, _ in count.most_common(HUBS)]


def _dot(site: Site, turn: float, ring: int, largest: int) -> Dot:
    """Return a site on a ring; `turn` is its place there, 0 to 1."""
    angle, middle = 2 * pi * (turn + ring / 40) - pi / 2, SIDE / 2
    x, y = middle + RADII[ring] * cos(angle), middle + RADII[ring] * sin(angle)
    r = 5 + 23 * sqrt(len(site.pages) / largest)
    return Dot(site, round(x, 1), round(y, 1), round(r, 1), ring < len(RADII) - 1)


def _line(start: Dot, end: Dot, count: int) -> Line:
    bend_x = (start.x + end.x + SIDE / 2) / 3
    bend_y = (start.y + end.y + SIDE / 2) / 3
    path = f"M{start.x} {start.y}Q{bend_x:.1f} {bend_y:.1f} {end.x} {end.y}"
    said = f"{start.site.name} → {end.site.name}: {count:,}"
    return Line(path, round(min(6, 0.8 + sqrt(count) / 2), 1), said)
