"""The closure: the URLs that are fetched or being fetched (P 2.2)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Table, within


class Closure:
    """URLs by number, each stored once however many pages link to it.

    A redirect closes every URL on its way.
    """

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.passed = array("q")  # numbers of the URLs that redirects of DONE rows led through
        self._numbers: dict[str, int] = {}
        self._passing: dict[str, int] = {}  # redirect URL: its LEASED row
        self._closed = Table(np.dtype([("closed", "?")]))

    def number_of(self, url: str) -> int:
        """Return the number of a URL; a new URL gets the next number."""
        number = self._numbers.setdefault(url, len(self.urls))
        if number == len(self.urls):
            self.urls.append(url)
            self._closed.extend(1)
        return number

    def knows(self, url: str) -> bool:
        """Return whether a URL has a number."""
        return url in self._numbers

    def is_closed(self, url: str) -> bool:
        """Return whether a URL is fetched or being fetched."""
        number = self._numbers.get(url)
        return number is not None and bool(self._closed["closed"][number])

    def closed(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which of the URLs [n] are fetched or being fetched."""
        return self._closed["closed"].take(numbers)

    def close(self, numbers: NDArray[np.integer] | int) -> None:
        """Note that the URLs of these numbers are fetched or being fetched."""
        self._closed["closed"][numbers] = True

    def reopen(self, number: int) -> None:
        """Note that the URL of this number is to be fetched again."""
        self._closed["closed"][number] = False

    def redirect(self, row: int, url: str) -> int:
        """Close the URL that a LEASED row was redirected to; return its number."""
        number = self.number_of(url)
        self.close(number)
        self._passing[url] = row
        return number

    def settle(self, row: int, end: int) -> None:
        """Note that a row is DONE and that its redirects ended at the URL of number `end`."""
        if self._passing:
            numbers = [self._numbers[url] for url, by in self._passing.items() if by == row]
            self.passed.extend(number for number in numbers if number != end)
            self._passing = {url: by for url, by in self._passing.items() if by != row}

    def restore(self, urls: Sequence[str]) -> None:
        """Fill an empty closure with URLs in the order of their numbers."""
        self.urls.extend(urls)
        self._numbers = {url: number for number, url in enumerate(urls)}
        self._closed.extend(len(urls))

    def restore_passed(self, numbers: NDArray[np.int64]) -> None:
        """Close the URLs that redirects of DONE rows led through."""
        within(numbers, len(self.urls))
        self.close(numbers)
        self.passed.extend(numbers.tolist())
