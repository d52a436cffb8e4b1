"""A file of answers about pages: lines of `yes URL` or `no URL`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from tres_scrapy.url.message import TresError, plainly, printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LINE: Final = re.compile(r"(yes|no|y|n)\s+(\S+)", re.IGNORECASE)


class AnswerError(TresError):
    """Raised when a file of answers cannot be read; the message is one line."""


def read_answers(path: Path) -> tuple[dict[str, bool], list[str]]:
    """Return whether each URL is relevant, and the URLs with yes and no: their last line counts.

    Raise AnswerError for a line that is not `yes URL` or `no URL`.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        return {}, []
    except (OSError, UnicodeDecodeError) as error:
        raise AnswerError(
            f"answers {path.name!r} cannot be read: {plainly(error, named=True)}"
        ) from None
    found: dict[str, bool] = {}
    doubtful: dict[str, None] = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            match = LINE.fullmatch(line.strip())
            if match is None:
                msg = (
                    f"answers {path.name!r}, line {number}: {printable(line.strip())[:60]!r} must "
                    "be `yes URL` or `no URL`"
                )
                raise AnswerError(msg)
            url, answer = match[2], match[1].lower().startswith("y")
            if found.setdefault(url, answer) != answer:
                doubtful[url] = None
            found[url] = answer
    return found, list(doubtful)


def add_answers(path: Path, answers: Mapping[str, bool]) -> None:
    """Add whether each URL is relevant to a file of answers."""
    with path.open("a+b") as file:
        if file.tell() and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
            file.write(b"\n")  # an editor may leave the last line open
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{'yes' if each else 'no'} {url}\n" for url, each in answers.items())
