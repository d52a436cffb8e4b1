import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tres_scrapy.agent.q_learner import Confidence
from tres_scrapy.frontier.feature import FEATURES

SHAPES = st.tuples(st.integers(0, 20), st.just(len(FEATURES)))
VECTORS = arrays("f4", SHAPES, elements=st.floats(0, 1, width=32))


@given(seen=VECTORS, asked=VECTORS)
def test_width_solves_the_linear_system(seen, asked):
    confidence = Confidence()
    confidence.add(seen)
    design = np.eye(1 + len(FEATURES))
    for x in seen.astype(float):
        z = [1, *x]
        design += [[a * b for a in z] for b in z]
    expected = []
    for x in asked.astype(float):
        z = np.array([1, *x])
        expected.append(np.sqrt(z @ np.linalg.solve(design, z)))
    np.testing.assert_allclose(confidence.width(asked), np.array(expected), rtol=1e-4)


@given(VECTORS)
def test_updates_singly_or_together_agree(seen):
    one_by_one, at_once = Confidence(), Confidence()
    at_once.add(seen)
    for x in seen:
        one_by_one.add(x)
    assert (one_by_one._design == at_once._design).all()


def test_unseen_is_wide_seen_narrow():
    confidence = Confidence()
    often, never = np.zeros((2, len(FEATURES)), dtype=np.float32)
    never[3] = 1
    confidence.add(np.repeat(often[None], 99, axis=0))
    often_width, never_width = confidence.width(np.stack([often, never]))
    np.testing.assert_allclose(often_width, 0.1)
    assert never_width > 1
