"""The interface of all reward models (P 3.3)."""

from __future__ import annotations

from math import log
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from tres_scrapy.page.place import WORD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

MAX_WORDS: Final = 1_000  # of a page that a model reads
# the log odds of a text without a known word: one in five texts of a training batch is relevant
BLANK_LOGIT: Final = log(1 / 4)


class Text(NamedTuple):
    """The lower-case words of a text in reading order, and the URL of its page."""

    words: Sequence[str]
    url: str = ""

    @classmethod
    def of(cls, text: str, url: str = "") -> Self:
        """Return the first MAX_WORDS words of a text.

        A `url` without "://", such as a file name, is ignored.
        """
        found = WORD.findall(text.lower())[:MAX_WORDS]
        return cls([*map(intern, found)], url if "://" in url else "")


class Classifier(Protocol):
    """Separates relevant texts from others by an uncalibrated logit."""

    @property
    def kind(self) -> str:
        """The name of the model in `topic.toml`."""

    def logits(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return the log odds of relevance of all texts, [n]."""

    def contributions(self, text: Text) -> dict[str, float]:
        """Return what each word of a text adds to its logit."""

    def sizes(self) -> dict[str, Any]:
        """Return the sizes for `topic.toml` from which the model can be built again."""

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the weights by their names in a pack."""
