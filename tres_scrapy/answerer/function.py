"""Calls a Python function for answers: `python -m tres_scrapy.answerer.function module:function`.

Standard input and output are those of an answerer (answerer.py).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from tres_scrapy.answerer.answer import AskedPage


def main() -> None:
    """Print the answer to each page of standard input; end with status 1 if the function fails."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        os.dup2(2, 1)  # printed text must not mix with the answers
        pages = [AskedPage(**json.loads(line)) for line in sys.stdin.buffer]
        try:
            output.writelines(f"{line}\n" for line in answers(sys.argv[1], pages))
        except (Exception, SystemExit) as error:  # it may raise any error
            sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")


def answers(name: str, pages: list[AskedPage]) -> Iterator[str]:
    """Yield the answers of a function as JSON; raise TypeError if it does not return a list."""
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)(pages)
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise TypeError(f"returned {found!r:.60}, must be a list of answers")
    for each in found:
        text = repr(each)
        with suppress(TypeError, ValueError, RecursionError):  # refused as it stands
            text = json.dumps(each)
        yield " ".join(text.split())


if __name__ == "__main__":
    main()
