"""Errors and counts as people read them: one printable line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

Value = TypeVar("Value")

LONGEST_REASON: Final = 200
MEANING: Final[dict[type[OSError], str]] = {  # of an error of the operating system
    FileNotFoundError: "there is no such file or folder",
    FileExistsError: "a file is where a folder should be",
    PermissionError: "you may not read or write it",
    IsADirectoryError: "it is a folder, not a file",
    NotADirectoryError: "a part of its path is a file, not a folder",
}
NUMBER: Final = re.compile(r"\[Errno -?\d+\] ")
IRREGULAR: Final = {"leaf": "leaves"}
CREDENTIALS: Final = re.compile(r"^(\s*([a-z][a-z0-9+.-]*:)?//)[^/\\?#]*@", re.IGNORECASE)
# Without the scheme: to look for one at each letter of a long header holds up the event loop.
_IN_TEXT: Final = re.compile(r"""(://)[^\s/\\?#<>'"]*@""")


class TresError(ValueError):
    """Says in one line what is wrong and what to do: `tres` prints it and exits with status 1."""


def plainly(error: Exception, *, named: bool = False) -> str:
    """Return the message of an error; that of the operating system without its number.

    With `named` the file is left out: the sentence before has named it.
    """
    if not isinstance(error, OSError) or error.strerror is None:
        return NUMBER.sub("", str(error))
    said = next((words for kind, words in MEANING.items() if isinstance(error, kind)), "")
    said = said or error.strerror[:1].lower() + error.strerror[1:]
    return said if named or error.filename is None else f"{str(error.filename)!r}: {said}"


def reason(error: Exception) -> str:
    """Return the message of an error about an untrusted file as one short, printable line."""
    said = f"it has no {error}" if isinstance(error, KeyError) else plainly(error)
    line = " ".join((said or type(error).__name__).split())
    return printable(line)[:LONGEST_REASON]


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; the name of its class if it has none."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def printable(text: str) -> str:
    """Return a text without control characters for terminals: escapes, changes of direction."""
    return text if text.isprintable() else "".join(filter(str.isprintable, text))


def plural(count: float, noun: str) -> str:
    """Return a noun in the singular for a count of 1, else in the plural."""
    *before, last = noun.rpartition(" ")
    return noun if count == 1 else "".join([*before, IRREGULAR.get(last, f"{last}s")])


def counted(count: float, noun: str) -> str:
    """Return a count and its noun, as in "1,200 pages"."""
    return f"{count:,.0f} {plural(count, noun)}"


def below(values: Mapping[str, Value], prefix: str) -> dict[str, Value]:
    """Return the values whose names begin with a prefix, by the rest of their names."""
    return {name[len(prefix) :]: each for name, each in values.items() if name.startswith(prefix)}


def without_credentials(text: str) -> str:
    """Return a text without the user names and passwords in its URLs."""
    return _IN_TEXT.sub(r"\1", text)
