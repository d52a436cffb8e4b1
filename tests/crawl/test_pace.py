import pytest

from tres_scrapy.crawl.pace import WINDOW, Pace


def test_a_pace_without_marks_is_none():
    pace = Pace(7, now=100.0)
    assert (pace.recent, pace.overall, pace.left(50)) == (0.0, 0.0, None)


def test_earlier_run_does_not_count():
    pace = Pace(1000, now=5.0)
    pace.note(1030, now=15.0)
    assert pace.overall == pace.recent == 3.0
    assert pace.left(1090) == 20.0


def test_pace_uses_last_window():
    pace = Pace(0, now=0.0)
    for second in range(1, 200):
        pace.note(min(second, 100), now=float(second))
    assert pace.recent == pytest.approx((100 - 199 + WINDOW) / WINDOW if WINDOW > 99 else 0.0)
    assert pace.overall == pytest.approx(100 / 199)
    assert pace.left(1000) is None


def test_unlimited_crawl_has_no_end():
    pace = Pace(0, now=0.0)
    pace.note(10, now=1.0)
    assert pace.left(None) is None
    assert pace.left(5) == 0.0
