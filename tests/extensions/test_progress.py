"""What the progress line says while no requests are sent."""

from types import SimpleNamespace

import pytest
from scrapy.settings import Settings

from tres_scrapy.extensions.progress import Progress
from tres_scrapy.settings import USER_AGENT


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
    assert ", 1 relevant domain, frontier 5 in 1 leaf (exploration)" in caplog.text
    assert caplog.text.rstrip().endswith(said)


@pytest.mark.parametrize(
    ("agent", "web", "times"), [(USER_AGENT, "", 1), ("mine", "", 0), (USER_AGENT, "synthetic", 0)]
)
def test_missing_contact_is_named_once(caplog, agent, web, times):
    chosen = {"TRES_TOPIC": "food", "USER_AGENT": agent, **({"TRES_WEB": web} if web else {})}
    settings = Settings(chosen)
    learner = SimpleNamespace(crawl=SimpleNamespace(pages=0))
    crawler = SimpleNamespace(settings=settings, get_extension=lambda kind: learner)
    Progress(crawler, 0, live=False).spider_opened(None)
    assert caplog.text.count("USER_AGENT has no contact: set your own") == times
