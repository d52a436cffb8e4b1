"""What an answerer gets and returns: pages, and whether each is relevant."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

from tres_scrapy.url.message import LONGEST_REASON, TresError, printable

SHAPE: Final = "must be true, false or null, or a list of such a value and a reason"


class AnswererError(TresError):
    """Raised when pages got no answers; the message gives the reason in one line."""


class AskedPage(NamedTuple):
    """A page that an answerer is asked about; `topic` holds the name and keywords of the topic."""

    url: str
    title: str
    text: str
    topic: str


class Answer(NamedTuple):
    """Whether a page is relevant, None if that is not known."""

    relevant: bool | None
    reason: str = ""

    @classmethod
    def read(cls, value: Any) -> Self:
        """Return the answer that a value is; raise ValueError for anything else."""
        match value:
            case bool() | None:
                return cls(value)
            case [bool() | None as relevant, str() as reason]:
                return cls(relevant, printable(" ".join(reason.split()))[:LONGEST_REASON])
        raise ValueError(SHAPE)
