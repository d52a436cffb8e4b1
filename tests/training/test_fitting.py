from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from tres_scrapy.topic.bilstm import KINDS
from tres_scrapy.topic.classifier import Text, WordVectors
from tres_scrapy.training import fitting, sample
from tres_scrapy.training.fitting import fit_bilstm, inverse_frequency
from tres_scrapy.training.sample import Example
from tres_scrapy.training.validation import TOLERANCE, Epoch, best_epoch

pytestmark = pytest.mark.slow

FOOD = ["cheese", "wine", "butter", "bread", "soup", "milk", "onion", "garlic"]
OTHER = ["disk", "cable", "goal", "match", "engine", "poem", "river", "atom"]


@pytest.fixture
def vectors() -> WordVectors:
    """Word vectors in which food words are far from the others."""
    matrix = np.random.default_rng(0).normal(0, 0.5, (len(FOOD + OTHER), 6)).astype(np.float32)
    matrix[: len(FOOD)] += 1
    return WordVectors(FOOD + OTHER, matrix)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs of two batches, for tests that do not depend on what is learnt."""
    monkeypatch.setattr(sample, "BATCHES", (2, 2))


def examples(count: int = 60) -> list[Example]:
    rng = np.random.default_rng(1)
    made = []
    for n in range(count):
        words = rng.choice(FOOD if n % 3 == 0 else OTHER, 30).tolist()
        made.append(Example(Text(words), Text(words[:1]), "web", n % 3 == 0))
    return made


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_model_learns_the_topic(vectors: WordVectors, kind: str) -> None:
    model, history = fit_bilstm(kind, examples(240), examples(60), vectors, seed=0, epochs=3)
    food, other = model.logits([Text(FOOD[3:]), Text(OTHER[3:])])
    assert model.kind == kind
    assert food > 1 > -1 > other
    assert history[-1].mcc > 0.9 > history[-1].loss


@pytest.mark.long
def test_wide_part_separates_words() -> None:
    vectors = WordVectors(["cheese", "disk"], np.ones((2, 3), dtype=np.float32))
    made = [
        Example(Text([word] * 20), Text([word]), "web", word == "cheese")
        for word in ("cheese", "disk") * 40
    ]
    gaps = {}
    for kind in ("bilstm", "widebilstm"):
        model, _ = fit_bilstm(kind, made, [], vectors, seed=0, epochs=3)
        food, other = model.logits([Text(["cheese"]), Text(["disk"])])
        gaps[kind] = food - other
    assert gaps["bilstm"] == pytest.approx(0, abs=1e-5)
    assert gaps["widebilstm"] > 1


@pytest.mark.usefixtures("short")
def test_wide_part_starts_at_half_regression(
    vectors: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, logits = examples(), {}
    for share in (0.0, fitting.SHARE):
        monkeypatch.setattr(fitting, "SHARE", share)
        model, _ = fit_bilstm("widebilstm", made, [], vectors, seed=0, epochs=1)
        logits[share] = model.logits([e.text for e in made])
    rows = np.zeros((len(made), len(vectors)))
    for row, e in zip(rows, made, strict=True):
        ids, count = np.unique(vectors.ids(e.text.words), return_counts=True)
        row[ids] = (1 + np.log(count)) * inverse_frequency(made, vectors)[ids]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    regression = LogisticRegression(C=10, class_weight="balanced", max_iter=1_000)
    expected = regression.fit(rows, [e.relevant for e in made]).decision_function(rows)
    assert logits[0.5] - logits[0.0] == pytest.approx(0.5 * expected, abs=1e-2)


@pytest.mark.usefixtures("short")
def test_same_seed_same_weights(vectors: WordVectors) -> None:
    """Bit for bit, whatever torch's own seed and number of threads."""
    states = []
    threads = torch.get_num_threads()
    for run, seed in enumerate((1, 1, 2)):
        torch.manual_seed(run)
        torch.set_num_threads(run + 1)
        model, _ = fit_bilstm("widebilstm", examples(), [], vectors, seed=seed, epochs=2)
        states.append(model.network.state_dict())
    torch.set_num_threads(threads)
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["dense.weight"], states[2]["dense.weight"])


@pytest.mark.usefixtures("short")
def test_fitting_spares_torch_state(vectors: WordVectors) -> None:
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    fit_bilstm("bilstm", examples(), [], vectors, seed=0, epochs=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


@pytest.mark.usefixtures("short")
def test_best_epoch_is_kept(vectors: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = iter([0.1, 0.9] + [0.2] * fitting.PATIENCE + [0.1, 0.9])
    monkeypatch.setattr(fitting, "_validate", lambda *_: next(figures))
    made = examples()
    patient, history = fit_bilstm("bilstm", made, made, vectors, seed=0, epochs=20)
    stopped, _ = fit_bilstm("bilstm", made, [], vectors, seed=0, epochs=20, stop=2)
    state, other = patient.network.state_dict(), stopped.network.state_dict()
    assert len(history) == 2 + fitting.PATIENCE
    assert all(torch.equal(state[name], other[name]) for name in state)


@pytest.mark.usefixtures("short")
def test_untitled_documents_validate_by_text(vectors: WordVectors) -> None:
    made = [replace(e, title=Text([])) for e in examples()]
    _, history = fit_bilstm("widebilstm", made, made, vectors, seed=0, epochs=8)
    assert history[-1].mcc == 1


def test_last_of_equal_epochs_wins() -> None:
    figures = [0.5, 0.9, 0.9 - TOLERANCE / 2, 0.9 - 2 * TOLERANCE]
    assert best_epoch([Epoch(0.1, mcc) for mcc in figures]) == 2


def test_inverse_frequencies_are_logarithms(vectors: WordVectors) -> None:
    texts = [["cheese"], ["cheese", "cheese", "wine"], ["the"], ["cheese"]]
    made = [Example(Text(words), Text([]), "web", False) for words in texts]
    found = inverse_frequency(made, vectors)
    assert found[[0, 1, 2]] == pytest.approx([0, np.log(4 / 2), np.log(4)])
