"""The record and the report of a crawl by a policy that lacks a tree or Q."""

import pytest
import rivals  # noqa: F401 - it names the policies
from recorded_run import crawl_of, record

from tres_scrapy.report.crawl_chart import charts
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.record import Record
from tres_scrapy.run.reason import EXPLORED, GREEDY, OTHER


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ("tree_random", EXPLORED),
        ("random", OTHER),
        ("breadth_first", GREEDY),
        ("best_first", GREEDY),
    ],
)
def test_record_has_what_the_policy_has(tmp_path, policy, kind):
    record(tmp_path / "a.run", crawl_of(policy, pages=40))
    has_tree = policy == "tree_random"
    with Record(tmp_path / "a.run") as read:
        pages = read.last(10)
        for page in pages:
            assert (page.leaf is not None) is has_tree
            assert (page.q_value is not None) is (kind == GREEDY)
            assert read.rivals(page.step) == []
            assert read.why(page).endswith(".")
        assert {page.chosen for page in pages} == {kind}
        assert (read.tree() is not None) is has_tree
        assert not read.dependence()
        assert (read.curve()[-1].leaves is not None) is has_tree
        assert "What Q depends on" not in render(read)
        names = {chart.name for chart in charts(read)}
        assert {"harvest", "relevant_domains", "frontier", "speed", "outcomes", "domains"} <= names
