import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.learner import FULL, NEWS, Learner
from tres_scrapy.cluster.transition import Transition
from tres_scrapy.config.learning import LearningOptions, LinkOptions
from tres_scrapy.frontier.feature import FEATURES, KNOWN_DOMAIN
from tres_scrapy.links.code import CODES
from tres_scrapy.links.model import KNOWN

SETUP = PolicyInputs(
    learning=LearningOptions(replay_capacity=6, batch_size=4, update_period=2),
    links=LinkOptions(replays=2, replay_capacity=5),
)


def lesson_of(number, *, good=None):
    """Return a lesson; those of relevant pages have code 7."""
    random = np.random.default_rng(number)
    reward = float(random.random() < 0.5) if good is None else float(good)
    x = random.random(len(FEATURES), dtype=np.float32)
    x[KNOWN_DOMAIN] = 1
    candidates = random.random((number % 3, len(FEATURES)), dtype=np.float32)
    codes = np.array([7 if reward else 8, number % CODES], dtype=np.uint32)
    known = np.zeros(len(KNOWN), dtype=np.float32)
    return Transition(x, known, reward, reward, candidates, codes).packed()


def all_of(teacher):
    """Return everything that decides about the future of a teacher."""
    taught = teacher.taught()
    return teacher.state(), [np.asarray(each).tolist() for each in taught]


EVENTS = st.tuples(st.sampled_from(["send", "send", "lose", "repeat", "kill"]), st.integers(0, 2))


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(EVENTS, max_size=30))
def test_each_lesson_is_learned_once(events):
    """Whatever is lost or comes twice; a killed teacher starts with an older state."""
    books = [[lesson_of(100 * shard + number) for number in range(40)] for shard in range(3)]
    teacher, saved, sent = Learner(SETUP, 3), None, []
    for number, (event, shard) in enumerate(events):
        first = teacher.positions[shard]
        message = shard, first, books[shard][first : first + 1 + number % 4]
        if event == "send":
            before = teacher.steps
            teacher.learn(*message)
            sent.append(message)
            assert teacher.steps == before + len(message[2])
        elif event == "lose":  # the next message has the lessons after those that were lost
            ahead = first + 1 + number % 2
            teacher.learn(shard, ahead, books[shard][ahead : ahead + 2])
            assert teacher.positions[shard] == first
        elif event == "repeat" and sent:
            before = all_of(teacher)
            teacher.learn(*sent[number % len(sent)])
            assert all_of(teacher) == before or saved is not None
        elif event == "kill":
            state = saved or teacher.state()
            saved, teacher = teacher.state(), Learner(SETUP, 3)
            teacher.restore(state)
        assert teacher.steps == sum(teacher.positions)


@pytest.mark.parametrize("lessons", [0, 1, 4, 13])
def test_restored_teacher_goes_on_alike(lessons):
    whole, restored = Learner(SETUP, 2), Learner(SETUP, 2)
    for number in range(lessons):
        whole.learn(number % 2, number // 2, [lesson_of(number)])
    restored.restore(whole.state())
    assert restored.state() == whole.state()
    for teacher in (whole, restored):
        teacher.learn(1, teacher.positions[1], [lesson_of(number) for number in range(50, 60)])
    assert all_of(restored) == all_of(whole)


def test_restored_teacher_tells_everything_again():
    """It has no memory of what it told since its state was saved."""
    teacher = Learner(SETUP, 1)
    teacher.learn(0, 0, [lesson_of(number) for number in range(9)])
    restored = Learner(SETUP, 1)
    restored.restore(teacher.state())
    assert restored.taught().where.tolist() == teacher.taught().where.tolist()
    assert restored.taught(restored.version).where.tolist() == []


def test_only_changed_weights_are_told():
    setup = replace(SETUP, links=LinkOptions(replays=0))
    teacher = Learner(setup, 1)
    teacher.learn(0, 0, [lesson_of(20, good=True)])
    version = teacher.version
    assert {7, 20} <= set(teacher.taught().where.tolist())
    teacher.learn(0, 1, [lesson_of(30, good=False)])
    told = set(teacher.taught(version).where.tolist())
    assert {8, 30} <= told
    assert not {7, 20} & told


def test_state_of_another_number_of_shards_is_refused():
    with pytest.raises(ValueError, match="number of shards"):
        Learner(SETUP, 3).restore(Learner(SETUP, 2).state())


def test_teacher_learns_what_is_relevant():
    teacher = Learner(PolicyInputs(), 1)
    teacher.learn(0, 0, [lesson_of(number, good=number % 2) for number in range(60)])
    taught = teacher.taught()
    weights = dict(zip(taught.where.tolist(), taught.weights.tolist(), strict=True))
    assert weights[7] > 0.2
    assert weights[8] < -0.2
    assert 0.4 < taught.recent < 0.6


def test_many_lessons_at_once_are_hurried():
    teacher = Learner(SETUP, 1)
    lessons = [lesson_of(number) for number in range(FULL + 3)]
    teacher.learn(0, 0, lessons[:3])
    assert teacher.hurried == 0
    teacher.learn(0, 0, lessons)
    assert (teacher.steps, teacher.hurried) == (FULL + 3, FULL)
    assert teacher.taught().updates == (FULL + 3) // SETUP.learning.update_period


def test_first_lessons_are_news():
    teacher = Learner(SETUP, 1)
    assert not teacher.has_news(0)
    teacher.learn(0, 0, [lesson_of(number) for number in range(20)])
    assert teacher.has_news(0)
    assert teacher.has_news(int(20 / (1 + NEWS)) - 1)
    assert not teacher.has_news(20)
    assert not teacher.has_news(19)


def test_damaged_lesson_does_not_stop_those_of_others():
    teacher = Learner(SETUP, 2)
    with pytest.raises(ValueError, match="buffer"):
        teacher.learn(0, 0, [lesson_of(1), b"damaged"])
    teacher.learn(1, 0, [lesson_of(2)])
    assert teacher.positions == [1, 1]


def test_shard_that_went_back_is_followed():
    """Its lessons after a fork are others than those that were learned under their numbers."""
    teacher = Learner(SETUP, 2)
    teacher.follow(0, [(1, 0)])
    teacher.learn(0, 0, [lesson_of(number) for number in range(9)])
    teacher.follow(0, [(1, 0), (4, 6)])
    assert teacher.positions == [6, 0]
    teacher.learn(0, 6, [lesson_of(20), lesson_of(21)])
    teacher.follow(0, [(1, 0), (4, 6)])  # it is known
    assert teacher.positions == [8, 0]
    restored = Learner(SETUP, 2)
    restored.restore(teacher.state())
    restored.follow(0, [(1, 0), (4, 6)])
    assert restored.positions == [8, 0]
    restored.follow(0, [(1, 0), (4, 6), (5, 3), (9, 7)])  # it went back twice
    assert restored.positions == [3, 0]
    restored.follow(0, [(1, 0), (4, 6), (5, 3), (9, 7), (10, 30)])
    assert restored.positions == [3, 0]


def test_state_of_an_older_version_is_read():
    teacher = Learner(SETUP, 2)
    teacher.learn(0, 0, [lesson_of(1)])
    state = load(teacher.state())
    head = json.loads(state["head"].tobytes())
    del head["lines"]
    state["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    restored = Learner(SETUP, 2)
    restored.restore(save(state))
    assert restored.positions == [1, 0]
