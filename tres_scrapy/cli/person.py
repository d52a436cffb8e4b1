"""Asks a person whether pages are relevant, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any, Final

from tres_scrapy.url.message import printable

WIDTH: Final = 100
PROMPT: Final = "Relevant? y(es), n(o), s(kip), q(uit): "


def ask_person(asked: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, bool]]:
    """Show pages, one after the other; yield the place and the answer of each until the user quits.

    A page has `url`, `title` and `text`, and perhaps `probability` and `why` it is asked about.
    """
    for place, each in enumerate(asked):
        title, text = printable(each["title"]), printable(each["text"])
        print(f"\n{place + 1} of {len(asked)}: {title or 'no title'}\n{printable(each['url'])}")
        if "why" in each:
            print(f"P(relevant) {each['probability']:.2f}, {each['why']}")
        print(fill(text, WIDTH))
        answer = _reply()
        if answer == "q":
            return
        if answer != "s":
            yield place, answer == "y"


def _reply() -> str:
    """Return y, n, s or q; q at the end of the input."""
    while True:
        try:
            answer = input(PROMPT).strip().lower()[:1]
        except (EOFError, KeyboardInterrupt):
            print()  # the cursor stands behind the prompt
            return "q"
        if answer in {"y", "n", "s", "q"}:
            return answer
