"""Ctrl-C ends a crawl whatever it waits for, and leaves whole files."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PROJECT, interpreter

pytestmark = pytest.mark.slow

LONGEST = 60.0  # seconds after which the process is killed: half are for a busy machine
STATES = ["silent", "slow", "names", "many", "paused", "judge", "ending"]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, object]]:
    """What each crawl left; all run at the same time, because they mostly wait."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(STATES)) as pool:
        patch.syspath_prepend(PROJECT / "benchmarks")
        from hostility import attack, site  # noqa: PLC0415 - they stand there only now

        patch.setattr(site, "ENDS", LONGEST)
        patch.setattr(site.sys, "executable", str(interpreter().path))
        yield {
            state: pool.submit(site.crawl, attack.STATES[state], 12.0)  # it reads each output line
            for state in STATES
        }


@pytest.mark.parametrize("state", STATES)
def test_ctrl_c_ends_a_crawl(outcomes, state):
    assert outcomes[state].result().status == 0
