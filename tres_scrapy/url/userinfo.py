"""Removes user names and passwords from URLs that are shown."""

from __future__ import annotations

import re
from typing import Final

CREDENTIALS: Final = re.compile(r"^(\s*([a-z][a-z0-9+.-]*:)?//)[^/\\?#]*@", re.IGNORECASE)
# The length of a scheme is bounded: a text such as a.a.a.a would take quadratic time.
_IN_TEXT: Final = re.compile(r"""\b([a-z][a-z0-9+.-]{0,30}://)[^\s/\\?#<>'"]*@""", re.IGNORECASE)


def without_credentials(text: str) -> str:
    """Return a text without the user names and passwords in its URLs."""
    return _IN_TEXT.sub(r"\1", text)
