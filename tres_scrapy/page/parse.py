"""Parses HTML that may be hostile: what would take quadratic time is cut off first."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborHTMLParser

MAX_TAGS: Final = 20_000  # the parser takes quadratic time on hostile nesting
MAX_ALL_TAGS: Final = 2 * MAX_TAGS  # end tags too
MAX_ATTRIBUTES: Final = 500  # a tag with so many ends the page: it is quadratic in these too
MAX_READ: Final = 20_000_000  # characters of all tags; each "<a" may begin one
START_TAG: Final = re.compile("<[a-zA-Z]")
TAG: Final = re.compile("</?[a-zA-Z]")
# All that is looked at becomes a part of the match, so that its length is the work.
VALUE: Final = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>"']*+)"""
ATTRIBUTE: Final = rf"[^\s/>][^\s/>=]*+\s*+(?:=\s*+{VALUE})?+[\s/]*+"
# Looks ahead, so that a tag in the text of another is found too: browsers differ from this pattern
# where quotes or comments are not closed.
START: Final = re.compile(
    rf"(?=(<[a-zA-Z][^\s/>]*+[\s/]*+(?:{ATTRIBUTE}){{0,{MAX_ATTRIBUTES - 1}}}+({ATTRIBUTE})?+))"
)


def parse(html: str) -> LexborHTMLParser:
    """Parse HTML, cut off where it has too many tags or attributes for the parser."""
    for tag, most in ((START_TAG, MAX_TAGS), (TAG, MAX_ALL_TAGS)):
        surplus = next(islice(tag.finditer(html), most, None), None)
        html = html if surplus is None else html[: surplus.start()]
    # a lone surrogate has no UTF-8 form
    return LexborHTMLParser(html[: _crowded(html)].encode("utf-8", "replace"))


def _crowded(html: str) -> int | None:
    """Return where the first tag with too many attributes begins, None without one.

    In a flood of tags that never end, each is as long as the rest of the page. After MAX_READ
    characters the page ends too.
    """
    left = MAX_READ
    for tag in START.finditer(html):
        start, end = tag.span(1)
        left -= end - start
        if left < 0 or tag[2] is not None:
            return start
    return None
