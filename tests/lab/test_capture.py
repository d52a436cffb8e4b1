"""What traps of endless pages take of a simulated crawl, by benchmarks/hostility/trap.py."""

from importlib import import_module

import numpy as np
import pytest
from comparing.library import Library
from comparing.simulation import Simulation, World
from conftest import PROJECT

from tres_scrapy.agent.trust import Trust
from tres_scrapy.config.config import Config

PAGES = 500


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")


def crawl(kind=None, text="", cap="none", topic="food"):
    """Return the share of the pages of a trap, and the true harvest rate."""
    trap = import_module("hostility.trap")
    settings = {"TRES_WEB": "synthetic", "TRES_TOPIC": topic, "TRES_WEB_SEED": 62}
    settings |= {"TRES_RANDOM_SEED": 62, "TRES_MAX_PER_DOMAIN": cap, "TRES_PAGES": PAGES}
    config = Config.from_settings(settings)
    world = World(config, user_agent="tres")
    if kind is not None:
        world.web = trap.TrappedWeb(world.web, kind, 0.08, text=text)
        world.library = Library(world.web, world.pack, config.reading)
    simulation = Simulation(world, config)
    simulation.run()
    return sum(map(trap.is_trap, simulation.order)) / PAGES, simulation.count.harvest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "text", "cap"),
    [("host", "pieces", "none"), ("domains", "words", "10"), ("domains", "pieces", "10")],
)
@pytest.mark.long
def test_trap_takes_a_small_part_of_a_crawl(kind, text, cap):
    taken, harvest = crawl(kind, text, cap)
    assert 0 < taken < 0.25
    assert harvest > 0.65


@pytest.mark.long
def test_trap_takes_half_of_a_crawl_that_believes_its_judge(monkeypatch):
    monkeypatch.setattr(Trust, "excess", lambda _, rows: np.zeros(len(rows), dtype=np.float32))
    monkeypatch.setattr("tres_scrapy.page.copies.ECHO", 1.0)
    taken, _ = crawl("host", "pieces")
    assert taken > 0.25
