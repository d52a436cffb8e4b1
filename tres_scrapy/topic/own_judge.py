"""A judge of the user's own: a Python function that says how likely pages are relevant."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

import numpy as np

from tres_scrapy.url.message import TresError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tres_scrapy.page.text import Page

OWN_THRESHOLD: Final = 0.5  # P(relevant) from which a page is relevant


class OwnJudge:
    """Calls `package.module:callable` on batches of pages.

    The callable gets a list of pages and returns P(relevant) of each. A class is made once, without
    arguments. Raise TresError if there is no such callable or making it fails.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        module, _, attribute = name.partition(":")
        try:
            judge = getattr(importlib.import_module(module), attribute)
            self._rate = judge() if isinstance(judge, type) else judge
        except (Exception, SystemExit) as error:  # it may raise any error
            raise self._error(error) from error
        if not callable(self._rate):
            raise TresError(f"judge {name!r} is a {type(judge).__name__}, must be callable")

    def __call__(self, pages: Sequence[Page]) -> NDArray[np.float64]:
        """Return P(relevant) of each page, [n]; raise TresError if the function fails."""
        try:
            rated = np.array([float(each) for each in self._rate(list(pages))])
        except (Exception, SystemExit) as error:
            raise self._error(error) from error
        if len(rated) != len(pages):
            raise TresError(
                f"judge {self.name!r} returned {len(rated)} numbers for {len(pages)} pages: "
                "return one for each"
            )
        if not ((rated >= 0) & (rated <= 1)).all():  # NaN is not either
            wrong = float(rated[~((rated >= 0) & (rated <= 1))][0])
            raise TresError(f"judge {self.name!r} returned {wrong!r}, must be from 0 to 1")
        return rated

    def _error(self, error: BaseException) -> TresError:
        message = " ".join(str(error).split())
        return TresError(f"judge {self.name!r} failed: {type(error).__name__}: {message}")
