"""The numbers at the top of the live page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final

from tres_scrapy.config.config import Config
from tres_scrapy.live.state import Monitor, failures
from tres_scrapy.live.steering import Steering

WATCHED: Final = 5.0  # seconds since its last question that a page counts as open
FAREWELL: Final = 3.0  # seconds in which an open page asks for the end of the crawl
SENDING: Final = 0.3  # seconds for the answer
TICK: Final = 0.05  # seconds between two looks at whether it has asked


class PageState:
    """Collects the numbers of a crawl that `look` returns when a page asks."""

    def __init__(self, config: Config, control: Steering, look: Callable[[], Monitor]) -> None:
        self._fixed = {"topic": config.topic, "policy": config.policy}
        self._control = control
        self._look = look
        self._started = monotonic()
        self._asked = -WATCHED  # when a page last asked
        self._ended = 0.0
        self._end: dict[str, Any] | None = None

    def __call__(self) -> dict[str, Any]:
        """Return the numbers by name."""
        monitor = self._look()
        self._asked = monotonic()
        state = monitor.state
        figures, cap = state.figures(), self._control.cap
        if state.count is None:
            more: dict[str, Any] = {
                "phase": next((each.get("phase") for each in state.shards.values()), None)
            }
        else:
            more = {"phase": f"trees of {state.count} shards", "shards": state.rows()}
        return {
            **self._fixed,
            **more,
            "status": self._control.state,
            "offline": bool(state.sum("offline")),
            "end": self._end,
            "pages": state.pages,
            "limit": state.limit,
            "relevant": state.sum("relevant_pages"),
            "harvest": state.harvest_rate,
            "domains": state.sum("relevant_domains"),
            "frontier": state.sum("frontier_size"),
            "leaves": figures.get("leaves"),
            "failures": failures(figures),
            "under_way": state.sum("under_way"),
            "rate": monitor.recent,
            "left": monitor.left,
            "elapsed": self._asked - self._started,
            "max": None if cap is None else str(cap),
        }

    def end(self, reason: str, files: Sequence[object]) -> None:
        """Tell pages from now on why the crawl ended and what files it left."""
        self._end, self._ended = {"reason": reason, "files": [*map(str, files)]}, monotonic()

    @property
    def is_told(self) -> bool:
        """Whether no open page still has to ask for the end of the crawl."""
        now = monotonic()
        if now - self._ended >= FAREWELL:
            return True
        if self._asked > self._ended:
            return now - self._asked >= SENDING
        return self._ended - self._asked >= WATCHED
