"""The calls of a shard to other processes, whose answers come in its reactor."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

logger = logging.getLogger(__name__)


class Calls:
    """Makes at most one call of a name at a time.

    `guarded` runs what is to be done with an answer. `replaced` receives the error that says that
    the shard has a newer owner. Other errors are logged: the call is made again.
    """

    def __init__(
        self, guarded: Callable[[Callable[[], None]], None], replaced: Callable[[object], None]
    ) -> None:
        self.under_way: set[object] = set()  # names of calls without an answer
        self._guarded = guarded
        self._replaced = replaced
        self._warned: set[object] = set()  # calls whose failure the log has named

    def make(
        self, name: object, call: Callable[[], Future[Any]], answered: Callable[[Any], None]
    ) -> None:
        """Call another process unless the last such call is under way."""
        if name not in self.under_way:
            self.under_way.add(name)
            call().add_done_callback(partial(self._in_reactor, name, answered))

    def end(self, name: object, answered: Callable[[Any], None], future: Future[Any]) -> None:
        """Pass on the answer to a call, or take note that it failed."""
        self.under_way.discard(name)
        error = future.exception()
        if error is None:
            self._guarded(partial(answered, future.result()))
        elif "StaleEpochError" in type(error).__name__:
            self._replaced(error)
        elif "ValueError" in type(error).__name__ and name not in self._warned:
            self._warned.add(name)
            logger.error("The call %s fails again and again: %s", name, error)
        else:
            logger.debug("No answer to %s: %s", name, error)

    def _in_reactor(
        self, name: object, answered: Callable[[Any], None], future: Future[Any]
    ) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        threaded: Any = reactor
        threaded.callFromThread(self.end, name, answered, future)
