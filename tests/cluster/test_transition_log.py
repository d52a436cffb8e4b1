import numpy as np
import pytest

from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.cluster.transition import Transition, TransitionLog, WeightUpdate
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.links.code import CODES
from tres_scrapy.links.model import KNOWN


def vector(value):
    return np.full(len(FEATURES), value, dtype=np.float32)


class World:
    """Rows whose features are their number plus a shift that changes, and what their links say."""

    shift = 0

    def features(self, rows):
        x = [vector(row + self.shift) for row in rows.tolist()]
        return np.array(x, dtype=np.float32).reshape(-1, len(FEATURES))

    def codes_of(self, row):
        return np.arange(row % 3, dtype=np.uint32)


def known(number):
    return np.full(len(KNOWN), number, dtype=np.float32)


def note(log, number, outlinks=0):
    """Note an experience of row `number` whose links have rows from a hundred times that on."""
    log.note_link(known(number))
    rows = np.arange(100 * number, 100 * number + outlinks)
    log.add(Experience(number, vector(number), float(number % 2)), 1.5 * (number % 2), rows)


def transitions_of(log, world, first=0, most=100):
    return [Transition.unpacked(data) for data in log.transitions(first, most, world.codes_of)]


def candidates_of(transitions):
    return [transition.candidates[:, 0].tolist() for transition in transitions]


def test_transition_holds_all_of_an_experience():
    world = World()
    log = TransitionLog(world.features)
    note(log, 5, outlinks=2)
    log.note_choice(70)
    (transition,) = transitions_of(log, world)
    assert (transition.x == 5).all()
    assert (transition.known == 5).all()
    assert (transition.earned, transition.target) == (1.5, 1.0)
    assert transition.candidates.shape == (3, len(FEATURES))
    assert candidates_of([transition]) == [[500, 501, 70]]
    assert transition.codes.tolist() == [0, 1]


def test_next_choice_is_candidate_of_all_before_it():
    world = World()
    log = TransitionLog(world.features)
    for number, chosen in ((1, None), (2, 8), (3, 9), (4, None)):
        note(log, number)
        if chosen:
            log.note_choice(chosen)
    assert candidates_of(transitions_of(log, world)) == [[8], [8], [9], []]


def test_transitions_can_be_read_again():
    world = World()
    log = TransitionLog(world.features)
    for number in range(1, 5):
        note(log, number, outlinks=1)
    first = candidates_of(transitions_of(log, world, 1, 2))
    assert first == [[200], [300]]
    world.shift = 1000
    assert candidates_of(transitions_of(log, world, 1, 2)) == [[1200], [1300]], "as it is now"
    assert not transitions_of(log, world, first=4)


def test_restored_notebook_gives_the_same_transitions():
    world = World()
    whole, restored = TransitionLog(world.features), TransitionLog(world.features)
    for number in range(1, 6):
        note(whole, number, outlinks=number % 3)
        if number % 2:
            whole.note_choice(50 + number)
        if number < 4:
            restored.note_link(known(number))
    numbers = np.arange(1, 4)
    past = Past(
        np.array([vector(number) for number in numbers]),
        (numbers % 2).astype(np.float32),
        numbers,
        np.where(numbers % 3, 100 * numbers, 0),
        numbers % 3,
        np.array([51, 53, 53]),
        np.zeros(3, dtype=np.float32),
    )
    restored.restore(past, 1.5 * past.rewards)
    for number in (4, 5):
        note(restored, number, outlinks=number % 3)
        if number == 5:
            restored.note_choice(55)
    assert restored.transitions(0, 9, world.codes_of) == whole.transitions(0, 9, world.codes_of)


def test_restored_experiences_wait_for_their_choice():
    world = World()
    log = TransitionLog(world.features)
    log.note_link(known(1))
    columns = (np.array([each]) for each in (1, 0, 0, -1))
    rows, firsts, outlinks, sampled = columns
    reward, grade = np.ones(1, dtype=np.float32), np.zeros(1, dtype=np.float32)
    past = Past(vector(1)[None], reward, rows, firsts, outlinks, sampled, grade)
    log.restore(past, past.rewards)
    log.note_choice(7)
    assert candidates_of(transitions_of(log, world)) == [[7]]


LESSON = Transition(
    vector(1), known(2), 1.0, 1.0, np.ones((2, 9), dtype="f4"), np.array([3], "<u4")
)


@pytest.mark.parametrize(
    "damage",
    [
        LESSON.packed()[:-1],
        LESSON.packed()[:50],
        LESSON._replace(x=vector(np.nan)).packed(),
        LESSON._replace(target=np.inf).packed(),
        LESSON._replace(candidates=np.full((1, 9), np.inf, dtype="f4")).packed(),
        LESSON._replace(codes=np.array([CODES], "<u4")).packed(),
    ],
)
def test_damaged_transition_is_refused(damage):
    Transition.unpacked(LESSON.packed())
    with pytest.raises(ValueError):  # noqa: PT011 - NumPy words most of them
        Transition.unpacked(damage)


def test_size_of_weights_is_in_bytes():
    columns = (np.array(each, dtype="f4") for each in ([0.5], [1.5], [2.5]))
    update = WeightUpdate(7, 9, vector(3), np.array([CODES - 1], "u4"), *columns)
    assert update.size == 4 * (len(update.parameters) + 4)
