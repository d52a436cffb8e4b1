"""Which pages are in the output, by what was said of them and what the last model says."""

from types import SimpleNamespace

import pytest

from tres_scrapy.export.topic_view import STAYS, TopicView
from tres_scrapy.run.run_file import StoredText

PAGE = "http://a.test/"


@pytest.mark.parametrize(
    ("before", "now", "answer", "pack", "expected"),
    [
        (False, 0.5, None, 0, True),
        (False, 0.49, None, 0, False),
        (True, STAYS, None, 0, True),
        (True, STAYS - 0.01, None, 0, False),
        (True, 0.49, None, 0.25, False),  # answers correct a trained pack
        (True, 0.9, False, 0, False),
        (False, 0.1, True, 0, True),
    ],
)
def test_relevant_page_stays_until_the_model_is_sure(before, now, answer, pack, expected):
    fit = SimpleNamespace(judge=lambda pages: [now for _ in pages], prior_weight=pack)
    view = TopicView(fit, {} if answer is None else {PAGE: answer}, "")
    page = SimpleNamespace(url=PAGE, final_url="", relevant=before)
    assert view.judge(page, StoredText("soup", "a soup"), 0.5) == (now, expected)
