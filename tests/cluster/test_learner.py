from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.learner import HURRIED_CALL, NEWS, Learner
from tres_scrapy.cluster.transition import Transition
from tres_scrapy.config.learning import LearningOptions, LinkOptions
from tres_scrapy.frontier.feature import FEATURES, KNOWN_DOMAIN
from tres_scrapy.links.code import CODES
from tres_scrapy.links.model import KNOWN

SETUP = PolicyInputs(
    learning=LearningOptions(replay_capacity=6, batch_size=4, update_period=2),
    links=LinkOptions(replays=2, replay_capacity=5),
)


def transition_of(number, *, good=None):
    """Return a transition; those of relevant pages have code 7."""
    random = np.random.default_rng(number)
    reward = float(random.random() < 0.5) if good is None else float(good)
    x = random.random(len(FEATURES), dtype=np.float32)
    x[KNOWN_DOMAIN] = 1
    candidates = random.random((number % 3, len(FEATURES)), dtype=np.float32)
    codes = np.array([7 if reward else 8, number % CODES], dtype=np.uint32)
    known = np.zeros(len(KNOWN), dtype=np.float32)
    return Transition(x, known, reward, reward, candidates, codes).packed()


def all_of(learner):
    """Return everything that decides about the future of a learner."""
    update = learner.update_since()
    return learner.state(), [np.asarray(each).tolist() for each in update]


EVENTS = st.tuples(st.sampled_from(["send", "send", "lose", "repeat", "kill"]), st.integers(0, 2))


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(EVENTS, max_size=30))
def test_each_transition_is_learned_once(events):
    """Whatever is lost or comes twice; a killed learner starts with an older state."""
    books = [[transition_of(100 * shard + number) for number in range(40)] for shard in range(3)]
    learner, saved, sent = Learner(SETUP, 3), None, []
    for number, (event, shard) in enumerate(events):
        first = learner.positions[shard]
        message = shard, first, books[shard][first : first + 1 + number % 4]
        if event == "send":
            before = learner.steps
            learner.learn(*message)
            sent.append(message)
            assert learner.steps == before + len(message[2])
        elif event == "lose":  # the next message has the transitions after those that were lost
            ahead = first + 1 + number % 2
            learner.learn(shard, ahead, books[shard][ahead : ahead + 2])
            assert learner.positions[shard] == first
        elif event == "repeat" and sent:
            before = all_of(learner)
            learner.learn(*sent[number % len(sent)])
            assert all_of(learner) == before or saved is not None
        elif event == "kill":
            state = saved or learner.state()
            saved, learner = learner.state(), Learner(SETUP, 3)
            learner.restore(state)
        assert learner.steps == sum(learner.positions)


@pytest.mark.parametrize("transitions", [0, 1, 4, 13])
def test_restored_teacher_goes_on_alike(transitions):
    whole, restored = Learner(SETUP, 2), Learner(SETUP, 2)
    for number in range(transitions):
        whole.learn(number % 2, number // 2, [transition_of(number)])
    restored.restore(whole.state())
    assert restored.state() == whole.state()
    for learner in (whole, restored):
        learner.learn(1, learner.positions[1], [transition_of(number) for number in range(50, 60)])
    assert all_of(restored) == all_of(whole)


def test_restored_teacher_tells_everything_again():
    """It has no memory of what it told since its state was saved."""
    learner = Learner(SETUP, 1)
    learner.learn(0, 0, [transition_of(number) for number in range(9)])
    restored = Learner(SETUP, 1)
    restored.restore(learner.state())
    assert restored.update_since().where.tolist() == learner.update_since().where.tolist()
    assert restored.update_since(restored.version).where.tolist() == []


def test_only_changed_weights_are_told():
    setup = replace(SETUP, links=LinkOptions(replays=0))
    learner = Learner(setup, 1)
    learner.learn(0, 0, [transition_of(20, good=True)])
    version = learner.version
    assert {7, 20} <= set(learner.update_since().where.tolist())
    learner.learn(0, 1, [transition_of(30, good=False)])
    told = set(learner.update_since(version).where.tolist())
    assert {8, 30} <= told
    assert not {7, 20} & told


def test_state_of_another_number_of_shards_is_refused():
    with pytest.raises(ValueError, match="number of shards"):
        Learner(SETUP, 3).restore(Learner(SETUP, 2).state())


def test_teacher_learns_what_is_relevant():
    learner = Learner(PolicyInputs(), 1)
    learner.learn(0, 0, [transition_of(number, good=number % 2) for number in range(60)])
    update = learner.update_since()
    weights = dict(zip(update.where.tolist(), update.weights.tolist(), strict=True))
    assert weights[7] > 0.2
    assert weights[8] < -0.2


def test_many_transitions_at_once_are_hurried():
    learner = Learner(SETUP, 1)
    transitions = [transition_of(number) for number in range(HURRIED_CALL + 3)]
    learner.learn(0, 0, transitions[:3])
    assert learner.hurried == 0
    learner.learn(0, 0, transitions)
    assert (learner.steps, learner.hurried) == (HURRIED_CALL + 3, HURRIED_CALL)
    assert learner.update_since().updates == (HURRIED_CALL + 3) // SETUP.learning.update_period


def test_first_transitions_are_news():
    learner = Learner(SETUP, 1)
    assert not learner.has_news(0)
    learner.learn(0, 0, [transition_of(number) for number in range(20)])
    assert learner.has_news(0)
    assert learner.has_news(int(20 / (1 + NEWS)) - 1)
    assert not learner.has_news(20)
    assert not learner.has_news(19)


def test_damaged_transition_does_not_stop_those_of_others():
    learner = Learner(SETUP, 2)
    with pytest.raises(ValueError, match="buffer"):
        learner.learn(0, 0, [transition_of(1), b"damaged"])
    learner.learn(1, 0, [transition_of(2)])
    assert learner.positions == [1, 1]
