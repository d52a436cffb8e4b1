"""A judge of the user's own: a Python function that says how likely pages are relevant."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tres_scrapy.page.text import Page

THRESHOLD: Final = 0.5  # P(relevant) from which a page is relevant


class OwnJudgeError(RuntimeError):
    """Raised when the function cannot be used; the message is one line that names it."""


class OwnJudge:
    """Calls `package.module:callable` on batches of pages.

    The callable gets a list of pages and returns P(relevant) of each. A class is made once, without
    arguments. Raise OwnJudgeError if there is no such callable or making it fails.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        module, _, attribute = name.partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
            self._rate = found() if isinstance(found, type) else found
        except (Exception, SystemExit) as error:  # it may raise any error
            raise self._error(error) from error
        if not callable(self._rate):
            raise OwnJudgeError(f"judge {name!r} is a {type(found).__name__}, must be callable")

    def __call__(self, pages: Sequence[Page]) -> NDArray[np.float64]:
        """Return P(relevant) of each page, [n]; raise OwnJudgeError if the function fails."""
        try:
            found = np.array([float(each) for each in self._rate(list(pages))])
        except (Exception, SystemExit) as error:
            raise self._error(error) from error
        if len(found) != len(pages):
            raise OwnJudgeError(
                f"judge {self.name!r} returned {len(found)} numbers for {len(pages)} pages: "
                "return one for each"
            )
        if not ((found >= 0) & (found <= 1)).all():  # NaN is not either
            wrong = float(found[~((found >= 0) & (found <= 1))][0])
            raise OwnJudgeError(f"judge {self.name!r} returned {wrong!r}, must be from 0 to 1")
        return found

    def _error(self, error: BaseException) -> OwnJudgeError:
        said = " ".join(str(error).split())
        return OwnJudgeError(f"judge {self.name!r} failed: {type(error).__name__}: {said}")
