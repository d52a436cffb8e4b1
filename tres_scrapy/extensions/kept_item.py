"""Items as JSON, so that JOBDIR keeps them until they are exported."""

from __future__ import annotations

import json
import sys
from operator import attrgetter
from typing import Any, Final

from itemadapter import ItemAdapter
from scrapy import Item

from tres_scrapy.items import RelevantPage, item_class
from tres_scrapy.url.message import TresError

_LONGEST: Final = 100  # characters quoted of a name from a file


def dump_item(item: Any) -> str:
    """Return an item as JSON; raise ValueError or TypeError if JSON cannot store all of it."""
    kind = type(item)
    name = f"{kind.__module__}:{kind.__qualname__}"
    text = json.dumps([name, ItemAdapter(item).asdict()])
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
            f"JOBDIR holds items of a class {path[:_LONGEST]!r} that is not loaded yet: "
            f"import {module[:_LONGEST]!r} at the top of the spider's file, then resume"
        )
    kind = attrgetter(path)(sys.modules[module])
    if not (isinstance(kind, type) and ItemAdapter.is_item_class(kind)):
        raise ValueError(f"{str(name)!r} is not a class of items")
    if kind is RelevantPage:
        kind = item_class(fields)
    return kind(fields) if issubclass(kind, dict | Item) else kind(**fields)
