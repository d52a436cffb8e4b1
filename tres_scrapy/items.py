"""The item of a relevant page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RelevantPage:
    """A relevant page, and why and when it was fetched.

    `url` was chosen, `final_url` answered after redirects; `language` is ISO 639-1, "" where it
    cannot be told; `depth` counts links from the seed and `path` names the pages on the way, the
    last hundred at most; `q_value` is None in the exploration phase and for seeds, `leaf`, the
    leaf's number when the choice was made, for seeds; `fetched_at` is an ISO 8601 time in UTC.
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
