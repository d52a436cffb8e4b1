import numpy as np
import pytest

from tres_scrapy.lab.refresh_policies import (
    StaticBandit,
    SwitchingBandit,
    ThompsonBandit,
    UniformBandit,
)

ALL = np.ones(3, bool)
LAST = np.array([False, False, True])


def generator():
    return np.random.default_rng(0)


def counts(bandit, allowed=ALL, draws=3_000):
    return np.bincount([bandit.choose(allowed) for _ in range(draws)], minlength=3) / draws


@pytest.mark.parametrize(
    "bandit",
    [
        UniformBandit(generator()),
        StaticBandit(np.array([0.7, 0.3, 0.0]), generator()),
        ThompsonBandit(np.ones(3), generator()),
    ],
    ids=lambda bandit: type(bandit).__name__,
)
def test_only_what_is_allowed_is_chosen(bandit):
    assert counts(bandit, LAST, 20).tolist() == [0, 0, 1]


def test_static_draws_by_shares():
    assert counts(UniformBandit(generator())) == pytest.approx([1 / 3] * 3, abs=0.03)
    shares = [0.7, 0.3, 0.0]
    assert counts(StaticBandit(np.array(shares), generator())) == pytest.approx(shares, abs=0.03)


def test_thompson_counts_both_outcomes():
    bandit = ThompsonBandit(np.ones(3), generator())
    for changed in (True, True, False, None):
        bandit.end(1, changed)
    assert bandit.changed.tolist() == [1, 3, 1]
    assert bandit.unchanged.tolist() == [1, 2, 1]


def test_thompson_finds_changing_arm():
    """P 4: the random draws, as printed, are not scaled by importance."""
    for weights, wanted in ((np.ones(3), 0), (np.array([1, 5, 1.0]), 1)):
        bandit = ThompsonBandit(weights, generator())
        for arm, chance in enumerate((0.8, 0.4, 0.1)):
            for number in range(100):
                bandit.end(arm, number < 100 * chance)
        assert counts(bandit).argmax() == wanted


class Told:
    def __init__(self, arm):
        self.arm, self.told = arm, []

    def choose(self, allowed):
        return self.arm

    def begin(self, arm):
        self.told.append(("begin", arm))

    def end(self, arm, changed):
        self.told.append(("end", arm, changed))


def test_second_bandit_learns_before_its_turn():
    first, second = Told(0), Told(1)
    bandit = SwitchingBandit(first, second, slots=2)
    chosen = []
    for _ in range(4):
        chosen.append(bandit.choose(ALL))
        bandit.begin(chosen[-1])
        bandit.end(chosen[-1], True)
    assert chosen == [0, 0, 1, 1]
    assert first.told == second.told
    assert len(second.told) == 8
