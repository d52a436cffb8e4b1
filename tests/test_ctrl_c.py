"""Ctrl-C ends a crawl whatever it waits for, and leaves whole files."""

import pytest
from conftest import PROJECT

pytestmark = pytest.mark.slow

LONGEST = 60.0  # seconds after which the process is killed: half are for a busy machine


@pytest.mark.parametrize("state", ["silent", "slow", "names", "many", "paused", "judge", "ending"])
def test_ctrl_c_ends_a_crawl(state, monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    from hostility import attack, site  # noqa: PLC0415 - they stand there only now

    monkeypatch.setattr(site, "ENDS", LONGEST)
    found = site.crawl(attack.STATES[state], 12.0)  # which reads each line of the output
    assert found.status == 0
