"""The version of the code that produced a result."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

DECIDING: Final = (
    "agent",
    "crawl",
    "frontier",
    "links",
    "page",
    "policies",
    "topic",
    "webs",
)  # folders whose code affects what a crawl fetches


@cache
def code_version() -> str:
    """Return a hash of the code that affects results: webs, policies and what they use."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for name in DECIDING:
        for path in sorted((package / name).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
