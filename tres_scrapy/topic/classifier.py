"""What every reward model answers, whatever it is made of (P 3.3)."""

from __future__ import annotations

from itertools import islice
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from tres_scrapy.page.text import WORD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

MAX_WORDS: Final = 1_000  # of a page that any model looks at


class Text(NamedTuple):
    """The lower-case words of a text in reading order, and the URL of the page they stand on."""

    words: Sequence[str]
    url: str = ""

    @classmethod
    def of(cls, text: str, url: str = "") -> Self:
        """Return the first words of a text, as many as a model looks at.

        A `url` that is not one, such as the name of a file, is left out: it says no topic.
        """
        found = islice(WORD.finditer(text.lower()), MAX_WORDS)
        return cls([intern(match.group()) for match in found], url if "://" in url else "")


class Classifier(Protocol):
    """Tells relevant texts from others by a logit that is not calibrated yet."""

    @property
    def kind(self) -> str:
        """The name of the model in `topic.toml`."""

    def logits(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return log odds of relevance, [n], all texts in one call."""

    def contributions(self, text: Text) -> dict[str, float]:
        """Return what each word of a text adds to its logit."""

    def sizes(self) -> dict[str, Any]:
        """Return the numbers that `topic.toml` records, enough to build the model again."""

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the weights, as they are written to a pack."""
