"""One line at the bottom of a terminal that is redrawn in place."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Sequence
from typing import Any, Final, TextIO

from tqdm import tqdm

_BETWEEN: Final = " · "
_COLUMNS, _ROWS = 80, 24  # if the terminal does not report its size


class TerminalLine:
    """Shows a text below the log lines of the same terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._bar: tqdm[Any] = tqdm(
            file=stream, bar_format="{desc}", leave=False, ncols=_COLUMNS, nrows=_ROWS
        )
        self._handlers = [
            handler
            for handler in logging.getLogger().handlers
            if isinstance(handler, logging.StreamHandler) and handler.stream is stream
        ]
        self._stream = stream
        for handler in self._handlers:
            handler.setStream(_Above(stream))
        atexit.register(self.close)  # Ctrl-C twice ends the program without spider_closed

    @property
    def shares_log(self) -> bool:
        """Whether log lines go to the same terminal."""
        return bool(self._handlers)

    def show(self, *parts: str) -> None:
        """Show as many parts as fit in the terminal, the most important first."""
        columns = os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        self._bar.ncols = columns
        self._bar.set_description_str(fitted(parts, columns))

    def close(self) -> None:
        """Remove the line."""
        atexit.unregister(self.close)
        self._bar.close()
        for handler in self._handlers:
            handler.setStream(self._stream)


class _Above:
    """Writes to a stream, above the line that tqdm keeps at the bottom."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with tqdm.external_write_mode(file=self._stream):
            self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


def fitted(parts: Sequence[str], columns: int) -> str:
    """Join as many of the first `parts` as fit in a line of the terminal."""
    parts = [part for part in parts if part]
    while len(parts) > 1 and len(_BETWEEN.join(parts)) >= columns:
        parts.pop()
    return _BETWEEN.join(parts)
