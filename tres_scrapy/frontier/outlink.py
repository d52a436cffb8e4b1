"""The links of a page as they enter the frontier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.links.code import RaggedArray, silent

NO_ACTIONS: Final[NDArray[np.float32]] = np.zeros((0, 3), dtype=np.float32)
NO_CUES: Final = silent(0)


class Outlinks(NamedTuple):
    """The links of a page that are followed.

    `actions` [n, 3] holds their features 4 to 6. `cues` holds what they say, None if only their
    URLs and anchor texts are known.
    """

    urls: Sequence[str] = ()
    anchors: Sequence[str] = ()
    actions: NDArray[np.float32] = NO_ACTIONS
    cues: RaggedArray | None = None

    def take(self, places: Sequence[int]) -> Outlinks:
        """Return some of the links."""
        return Outlinks(
            [self.urls[i] for i in places],
            [self.anchors[i] for i in places],
            self.actions[list(places)],
            None if self.cues is None else self.cues.take(places),
        )


NO_LINKS: Final = Outlinks()
