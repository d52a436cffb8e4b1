"""The steps of a crawl, and what follows them."""

from unittest.mock import MagicMock

from tres_scrapy.extensions.step import Steps


def test_listener_that_fails_loses_no_page(caplog):
    def fail(booking):
        raise KeyError("broken")

    crawl, job, after = MagicMock(), MagicMock(), MagicMock()
    listeners = [fail, after]
    steps = Steps(crawl, MagicMock(), MagicMock(), MagicMock(), job, listeners=listeners)
    assert steps.book(3, None) is job.book.return_value
    after.assert_called_once_with(crawl.book.return_value)
    assert "KeyError: 'broken'" in caplog.text
