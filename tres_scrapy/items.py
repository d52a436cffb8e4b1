"""The item of a relevant page; items of any kind as JSON, as they wait in JOBDIR."""

from __future__ import annotations

import json
import sys
from collections.abc import Container
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Final

from itemadapter import ItemAdapter
from scrapy import Item

from tres_scrapy.url.message import TresError

LONGEST: Final = 100  # characters quoted of a name from a file

CHOSEN: Final[dict[str, Any]] = {  # fields that an item has if they are asked for
    "html": str,
    "markdown": str,
    "date": str,
    "headings": list[str],
    "scores": dict[str, float],  # by topic, of crawls with several
}


@dataclass(slots=True)
class RelevantPage:
    """A relevant page, and why and when it was fetched.

    `url` was chosen, `final_url` answered after redirects. `language` is ISO 639-1, "" if unknown.
    `depth` counts links from the seed; `path` holds the URLs on the way, the last hundred at most.
    `q_value` is None in the exploration phase and for seeds. `leaf` is the leaf's number when the
    choice was made, None for seeds. `fetched_at` is an ISO 8601 time in UTC. `why` is a sentence
    that says why `url` was chosen, "" in items of jobs begun before this field existed. `domain` is
    the registrable domain of `final_url`. `new` is whether neither URL is in the files of
    TRES_KNOWN, `new_domain` whether the domain is not. `rendered` is whether a browser ran the
    page's scripts. `content_type` is text/html or application/pdf, as the content says.
    `rights` holds what was said about the use of the page, each with `signal`, `value`, `where` it
    stood and `when` it was read.
    """

    url: str
    final_url: str
    title: str
    text: str
    language: str
    probability: float
    depth: int
    path: list[str]
    anchor: str
    q_value: float | None
    leaf: int | None
    fetched_at: str
    status: int
    why: str = ""
    domain: str = ""
    new: bool = True
    new_domain: bool = True
    rendered: bool = False
    content_type: str = "text/html"
    rights: list[dict[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class RetractedPage:
    """A page whose item has left, and that the last model does not find relevant."""

    url: str
    final_url: str
    probability: float
    retracted: bool = True


def item_class(names: Container[str]) -> type[RelevantPage]:
    """Return RelevantPage with those of CHOSEN that are among `names`."""
    chosen = tuple(name for name in CHOSEN if name in names)
    return _item_class(chosen) if chosen else RelevantPage


@cache
def _item_class(chosen: tuple[str, ...]) -> type[RelevantPage]:
    fields = [(name, CHOSEN[name], field(default_factory=CHOSEN[name])) for name in chosen]
    kind = make_dataclass(RelevantPage.__name__, fields, bases=(RelevantPage,), slots=True)
    kind.__module__ = __name__  # JOBDIR keeps the name
    return kind


def dump_item(item: Any) -> str:
    """Return an item as JSON; raise ValueError or TypeError if JSON cannot store all of it."""
    kind = type(item)
    name = f"{kind.__module__}:{kind.__qualname__}"
    text = json.dumps([name, dict(ItemAdapter(item))])
    if load_item(text) != item:
        raise ValueError("it holds values that JSON cannot store")
    return text


def load_item(text: str) -> Any:
    """Return the item that `dump_item` wrote, without importing the module that the text names.

    Raise TresError if that module is not loaded, ValueError or LookupError if the text is not such
    an item or cannot be exported.
    """
    name, fields = json.loads(text)
    json.dumps(fields, ensure_ascii=False).encode()  # raises UnicodeEncodeError: not exportable
    module, _, path = str(name).partition(":")
    if module not in sys.modules:
        raise TresError(
            f"JOBDIR holds items of a class {path[:LONGEST]!r} that is not loaded yet: "
            f"import {module[:LONGEST]!r} at the top of the spider's file, then resume"
        )
    kind = attrgetter(path)(sys.modules[module])
    if not (isinstance(kind, type) and ItemAdapter.is_item_class(kind)):
        raise ValueError(f"{str(name)!r} is not a class of items")
    if kind is RelevantPage:
        kind = item_class(fields)
    return kind(fields) if issubclass(kind, dict | Item) else kind(**fields)
