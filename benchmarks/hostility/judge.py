"""A judge that takes long for each page: a model that hangs, or pages that are made to be slow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

SECONDS: Final = 8.0  # for each page


def rate(pages: Sequence[object]) -> list[float]:
    """Return that all pages are relevant, late."""
    time.sleep(SECONDS * len(pages))
    return [1.0] * len(pages)
