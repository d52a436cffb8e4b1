import math
from datetime import UTC, datetime

import pytest

from tres_scrapy.crawl.failure import Failure, seconds_of

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("9" * 5000, math.inf),
        ("Sun, 22 Nov 2026 12:01:00 GMT", 60.0),
        ("Sun, 22 Nov 2026 13:01:00 +0100", 60.0),
        ("Sunday, 22-Nov-26 11:00:00 GMT", 0.0),
        ("Sun, 22 Nov 99999 12:01:00 GMT", None),
        ("-1", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read(header, seconds):
    assert seconds_of(header, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "passes"), [(403, False), (404, False), (408, True), (429, True), (503, True)]
)
def test_status_says_whose_fault_it_is(status, passes):
    failure = Failure.of_status(status, 5.0)
    assert failure.passes == passes
    assert failure.retry_after == (5.0 if passes else None)
