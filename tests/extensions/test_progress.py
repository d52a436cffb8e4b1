"""What the progress line says while no requests are sent."""

from types import SimpleNamespace

import pytest

from tres_scrapy.extensions.progress import Progress


@pytest.mark.parametrize(
    ("paused", "offline", "said"),
    [(True, False, ", paused"), (False, True, ", network gone"), (False, False, " s left")],
)
def test_line_says_why_nothing_is_sent(caplog, paused, offline, said):
    caplog.set_level("INFO")
    figures = {"relevant_domains": 1, "frontier_size": 5, "leaves": 1, "phase": "exploration"}
    crawl = SimpleNamespace(pages=2, limit=9, harvest_rate=0.5, figures=lambda: figures)
    learner = SimpleNamespace(health=SimpleNamespace(in_doubt=offline))
    engine = SimpleNamespace(paused=paused)
    crawler = SimpleNamespace(engine=engine, get_extension=lambda kind: learner)
    Progress(crawler, 0, live=False)._log(crawl)
    assert "frontier 5 in 1 leaf (exploration)" in caplog.text
    assert caplog.text.rstrip().endswith(said)
