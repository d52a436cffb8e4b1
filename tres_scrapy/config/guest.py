"""The table of the guests: folders of the package that can be deleted and plug into the crawler."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

# What a guest offers, by kind: "tres_scrapy.GUEST.MODULE:NAME". No other line imports a guest.
OFFERS: Final[dict[str, tuple[str, ...]]] = {
    "shard_crawl": ("tres_scrapy.cluster.shard_crawl:make_shard_crawl",),
    "shard_journal": ("tres_scrapy.cluster.shard_journal:ShardJournal",),
    "records": ("tres_scrapy.cluster.joining:join_shards",),
    "refresh_policies": ("tres_scrapy.lab.refresh_policies:POLICIES",),
}


def offered(kind: str) -> list[Any]:
    """Return what the guests offer of a kind, in the order of the table."""
    return [_load(place) for place in places(kind)]


def places(kind: str) -> list[str]:
    """Return where the offers of a kind are, of the guests that have not been deleted."""
    return [place for place in OFFERS.get(kind, ()) if find_spec(_guest(place)) is not None]


def _guest(place: str) -> str:
    return ".".join(place.split(".")[:2])


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
