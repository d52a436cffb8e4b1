"""The item of a relevant page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RelevantPage:
    """A relevant page, and why and when it was fetched.

    `url` was chosen, `final_url` answered after redirects; `language` is ISO 639-1, "" where it
    cannot be told; `depth` counts links from the seed and `path` names the pages on the way, the
    last hundred at most; `q_value` is None in the exploration phase and for seeds, `leaf`, the
    leaf's number when the choice was made, for seeds; `fetched_at` is an ISO 8601 time in UTC;
    `why` says in a sentence how `url` was chosen, "" in items of a job begun before there was one;
    `domain` is the registrable domain of `final_url`; `new` and `new_domain` say that the files of
    TRES_KNOWN have neither URL, not the domain;
    `rendered` says whether the page was read after its scripts had run in a browser.
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


@dataclass(slots=True)
class FoundRecord:
    """A record that a search box returned and nobody fetched: its URL, the text of its link.

    `query` is the first that returned it, `site` the host of the search box.
    """

    url: str
    anchor: str
    query: str
    site: str
    found_at: str
