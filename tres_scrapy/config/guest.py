"""The table of the guests: folders of the package that can be deleted and plug into the crawler."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

# What a guest offers, by kind: "tres_scrapy.GUEST.MODULE:NAME", or a whole module without a name.
# No other line imports a guest.
OFFERS: Final[dict[str, tuple[str, ...]]] = {
    "spiders": ("tres_scrapy.refresh.spider", "tres_scrapy.surface.spider"),
    "options": (  # of the spiders
        "tres_scrapy.surface.settings:SurfaceOptions",
        "tres_scrapy.refresh.settings:RefreshConfig",
    ),
    "failure": ("tres_scrapy.surface.spider:NO_SEARCH",),  # reasons for the end of a crawl
    "shard_crawl": ("tres_scrapy.cluster.shard_crawl:make_shard_crawl",),
    "shard_journal": ("tres_scrapy.cluster.shard_journal:ShardJournal",),
    "records": ("tres_scrapy.cluster.joining:join_shards",),
    "webs": ("tres_scrapy.lab.webs.web_process:WebProcess",),
}


def offered(kind: str) -> list[Any]:
    """Return what the guests offer of a kind, in the order of the table."""
    return [load(place) for place in places(kind)]


def places(kind: str) -> list[str]:
    """Return where the offers of a kind are, of the guests that have not been deleted."""
    return [place for place in OFFERS.get(kind, ()) if _is_here(place)]


def _is_here(place: str) -> bool:
    spec = find_spec(".".join(place.split(".")[:2]))
    return spec is not None and spec.origin is not None  # else a folder of compiled files is left


def load(place: str) -> Any:
    """Return what is at `package.module:NAME`; raise ImportError or AttributeError without it."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
