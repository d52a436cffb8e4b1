import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tres_scrapy.config.learning import LinkOptions
from tres_scrapy.links.code import BITS, GROUP_SIZE, CueGroup, RaggedArray
from tres_scrapy.links.model import GROUPS, LinkModel, LinkPrior, sigmoid

MEANS = np.array([0.5, -1.0], dtype=np.float32)
PRECISIONS = np.array([1.0, 4.0], dtype=np.float32)
PRIOR = LinkPrior(
    np.array([(CueGroup.FACT << BITS) | 1, (CueGroup.URL << BITS) | 2], dtype=np.uint32),
    np.array([2.0, -0.25], dtype=np.float32),
)
OPTIONS = LinkOptions(without=("path", "siblings"), variance=0.5, rate=0.4, shrinkage=0.01)
CODES = st.lists(
    st.builds(
        lambda group, number: (group << BITS) | number,
        st.sampled_from([CueGroup.URL, CueGroup.ANCHOR, CueGroup.PATH, CueGroup.FACT]),
        st.sampled_from([0, 1, 2, GROUP_SIZE - 1]),
    ),
    max_size=6,
)
KNOWN = st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, -2.0])] * len(MEANS))
LINKS = st.tuples(KNOWN, CODES)
EVENTS = st.lists(st.tuples(st.sampled_from(["gain", "fit"]), LINKS, st.booleans()), max_size=12)


def model_of(options=OPTIONS):
    return LinkModel(options, MEANS, PRECISIONS, PRIOR)


def read(model, *links):
    known = np.array([known for known, _ in links], dtype=np.float32).reshape(-1, len(MEANS))
    said = RaggedArray.of([codes for _, codes in links])
    return model.read(known, said.codes, np.repeat(np.arange(len(links)), said.counts))


@pytest.fixture(scope="module")
def model():
    """A model that has learned a little."""
    learned = model_of()
    for group in (CueGroup.URL, CueGroup.ANCHOR):
        learned.fit(read(learned, ((1.0, 0.5), [(group << BITS) | 1])), 1.0)
    return learned


class PlainModel:
    """Logistic regression over dictionaries.

    A run that occurs twice in a URL counts twice in a logit, and once in a step.
    """

    def __init__(self):
        self.weights, self.squares, self.precisions = {}, {}, {}

    def inputs(self, link):
        """Return the (name, value) of what the model reads of a link."""
        known, codes = link
        sizes = [sum(other >> BITS == code >> BITS for other in codes) for code in codes]
        values = [
            (code, 0.0 if code >> BITS == CueGroup.PATH else 1 / math.sqrt(size))
            for code, size in zip(codes, sizes, strict=True)
        ]
        return [*values, *((f"known {i}", value) for i, value in enumerate(known))]

    def prior(self, name):
        if isinstance(name, str):
            return float(MEANS[int(name.split()[1])])
        return dict(zip(*map(np.ndarray.tolist, PRIOR), strict=True)).get(name, 0.0)

    def weight(self, name):
        return self.weights.get(name, self.prior(name))

    def precision(self, name):
        known = isinstance(name, str)
        return self.precisions.get(
            name, float(PRECISIONS[int(name.split()[1])]) if known else 1 / OPTIONS.variance
        )

    def logit(self, link):
        return sum(value * self.weight(name) for name, value in self.inputs(link))

    def deviation(self, link):
        return math.sqrt(sum(v * v / self.precision(name) for name, v in self.inputs(link)))

    def fit(self, link, reward):
        error = 1 / (1 + math.exp(-self.logit(link))) - reward
        for name, value in dict(self.inputs(link)).items():
            pull = OPTIONS.shrinkage * (self.weight(name) - self.prior(name))
            gradient = error * value + pull
            self.squares[name] = self.squares.get(name, 0.01) + gradient**2
            step = OPTIONS.rate * gradient / math.sqrt(self.squares[name])
            self.weights[name] = self.weight(name) - step

    def gain(self, link, reward):
        p = 1 / (1 + math.exp(-self.logit(link)))
        for name, value in dict(self.inputs(link)).items():
            self.precisions[name] = self.precision(name) + p * (1 - p) * value**2


@settings(max_examples=settings.default.max_examples // 2)
@given(EVENTS, st.lists(LINKS, max_size=5))
def test_model_equals_dictionaries(events, asked):
    model, plain = model_of(), PlainModel()
    for event, link, reward in events:
        if event == "fit":
            model.fit(read(model, link), float(reward))
        else:
            model.gain(read(model, link))
        getattr(plain, event)(link, float(reward))
    found = model.estimate(read(model, *asked))
    logits, deviations = map(plain.logit, asked), map(plain.deviation, asked)
    np.testing.assert_allclose(found.logit, [*logits], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.deviation, [*deviations], rtol=1e-3)


@given(st.lists(LINKS, min_size=1, max_size=5))
def test_links_are_read_alike_together_or_alone(model, links):
    together = read(model, *links)
    for number, link in enumerate(links):
        alone = model.estimate(read(model, link)).logit[0]
        logit = model.estimate(together).logit[number]
        np.testing.assert_allclose(alone, logit, rtol=1e-5, atol=1e-6)


@given(LINKS)
def test_groups_have_equal_norms(model, link):
    """A long URL does not outweigh an anchor; a group that is off has no weight."""
    told = read(model, link)
    for group in CueGroup:
        values = told.values[(told.codes >> BITS) == group]
        norm = 0.0 if group == CueGroup.PATH or not len(values) else 1.0
        assert math.isclose(np.linalg.norm(values), norm, abs_tol=1e-6)


def test_precise_group_names_are_options():
    for group in CueGroup:
        model = model_of(LinkOptions(without=(group.name.lower(),)))
        codes = [other << BITS for other in CueGroup]
        values = read(model, ((0.0, 0.0), codes)).values
        assert values.tolist() == [float(other != group) for other in CueGroup]


def test_model_learns_the_telling_code():
    model, random = model_of(), np.random.default_rng(0)
    good, noise = CueGroup.ANCHOR << BITS, (CueGroup.ANCHOR << BITS) + 1
    asked = read(model, ((1.0, 0.0), [good]), ((1.0, 0.0), [noise]), ((1.0, 0.0), [noise + 1]))
    before = model.estimate(asked)
    for _ in range(100):
        told = [code for code in (good, noise) if random.random() < 0.5]
        link = read(model, ((1.0, 0.0), told))
        model.gain(link)
        model.fit(link, float(good in told))
    after = model.estimate(asked)
    assert before.probability[0] == before.probability[1]
    assert after.probability[0] > 0.8
    assert after.probability[1] < 0.5
    assert (after.deviation < before.deviation).all()
    assert after.deviation[0] < after.deviation[2], "nothing is known of the third"


def test_doubt_pulls_probability_to_half():
    model = model_of()
    link = read(model, ((2.0, 0.0), [CueGroup.URL << BITS]))
    unsure = model.estimate(link)
    sure = unsure._replace(deviation=np.zeros(1, dtype=np.float32))
    assert 0.5 < unsure.probability[0] < sure.probability[0]
    assert sure.probability.tolist() == sigmoid(sure.logit).tolist()


def test_sigmoid_of_large_numbers_is_finite():
    p = sigmoid(np.array([-1e30, -1.0, 0.0, 1.0, np.inf]))
    assert 0 < p[0] < 1e-9
    assert p[4] == 1
    np.testing.assert_allclose(p[1:4], [1 / (1 + math.e), 0.5, math.e / (1 + math.e)], rtol=1e-6)


def columns_of(model):
    return np.stack([model.weights, model.squares, model.precisions])


SURE = st.tuples(st.tuples(st.sampled_from([0.0, 30.0]), st.just(0.0)), CODES)  # a large logit


@settings(max_examples=settings.default.max_examples // 4)  # of models of a million weights
@given(st.lists(st.tuples(st.sampled_from(["gain", "fit"]), LINKS | SURE, st.booleans())))
@example([("fit", ((1.0, -4.0), []), True), ("fit", ((30.0, 0.0), [0]), True)])  # a tiny step
def test_restored_model_is_the_same(events):
    model, restored = model_of(), model_of()
    for event, link, reward in events:
        told = read(model, link)
        model.gain(told) if event == "gain" else model.fit(told, float(reward))
    restored.restore(model.state())
    assert (columns_of(restored) == columns_of(model)).all()
    assert restored.state() == model.state()


def test_new_model_has_no_state():
    assert model_of().state() == b""


def state_of(place=0, weight=0.0, square=1.0, precision=1.0):
    return (
        np.array([place], "<u4").tobytes() + np.array([weight, square, precision], "<f4").tobytes()
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (state_of()[:-1], "cut off"),
        (state_of() + b"\0" * 4, "cut off"),
        (state_of(place=GROUPS * GROUP_SIZE + len(MEANS)), "other weights"),
        (state_of(weight=math.nan), "impossible"),
        (state_of(weight=math.inf), "impossible"),
        (state_of(weight=-1e30), "impossible"),
        (state_of(square=0.0), "impossible"),
        (state_of(square=-1.0), "impossible"),
        (state_of(precision=0.0), "impossible"),
        (state_of(precision=math.nan), "impossible"),
    ],
)
def test_damaged_state_is_refused(state, said):
    model = model_of()
    before = columns_of(model)
    with pytest.raises(ValueError, match=said):
        model.restore(state)
    assert (columns_of(model) == before).all()
