"""Which pages are in the output, by what was said of them and what the last model says."""

from types import SimpleNamespace

import pytest

from tres_scrapy.export.topic_view import STAYS, TopicView
from tres_scrapy.run.run_file import StoredText

PAGE = "http://a.test/"


@pytest.mark.parametrize(
    ("before", "now", "answer", "expected"),
    [
        (False, 0.5, None, True),
        (False, 0.49, None, False),
        (True, STAYS, None, True),
        (True, STAYS - 0.01, None, False),
        (True, 0.9, False, False),
        (False, 0.1, True, True),
    ],
)
def test_relevant_page_stays_until_the_model_is_sure(before, now, answer, expected):
    fit = SimpleNamespace(judge=lambda pages: [now for _ in pages])
    view = TopicView(fit, {} if answer is None else {PAGE: answer}, "")
    page = SimpleNamespace(url=PAGE, final_url="", relevant=before)
    assert view.judge(page, StoredText("soup", "a soup"), 0.5) == (now, expected)
