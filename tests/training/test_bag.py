from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tres_scrapy.topic.classifier import LINEAR_KINDS, BagOfWords, Text
from tres_scrapy.training.fitting import fit_bag
from tres_scrapy.training.sample import Example

FOOD = ["cheese", "wine", "butter", "bread"]
OTHER = ["disk", "cable", "goal", "match"]


def examples(count: int = 60) -> list[Example]:
    rng = np.random.default_rng(0)
    made = []
    for n in range(count):
        words = [*rng.choice(FOOD if n % 3 == 0 else OTHER, 9).tolist(), "river", "the"]
        made.append(Example(Text(words), Text(words[:1]), "web", n % 3 == 0))
    return made


@pytest.mark.parametrize("kind", LINEAR_KINDS)
def test_logit_equals_fitted_model(kind: str) -> None:
    """Our inference, compared with scikit-learn's own pipeline of the same steps."""
    made = examples()
    tfidf = kind == "tfidf"
    pipeline = TfidfVectorizer(
        analyzer=lambda words: [w for w in words if w != "the"],
        min_df=3,
        sublinear_tf=tfidf,
        use_idf=tfidf,
    )
    rows = pipeline.fit_transform([e.text.words for e in made])
    model = (
        LogisticRegression(C=10, class_weight="balanced", max_iter=1_000)
        if tfidf
        else LinearSVC(class_weight="balanced", random_state=0, max_iter=10_000)
    ).fit(rows, [e.relevant for e in made])
    texts = [*(e.text for e in made), Text(["unknown", "cheese", "cheese"])]
    expected = model.decision_function(pipeline.transform([text.words for text in texts]))
    assert fit_bag(kind, made).logits(texts) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", LINEAR_KINDS)
def test_contributions_sum_to_logit(kind: str) -> None:
    model = fit_bag(kind, examples())
    text = Text(["cheese", "river", "disk", "cheese", "unknown"])
    added = model.contributions(text)
    assert added.keys() == {"cheese", "river", "disk"}
    assert added["cheese"] > 0 > added["disk"]
    assert model.bias + sum(added.values()) == pytest.approx(model.logits([text])[0])


def test_unknown_words_give_bias() -> None:
    model = fit_bag("tfidf", examples())
    assert model.logits([Text([]), Text(["unknown"])]).tolist() == [model.bias] * 2
    assert model.logits([]).shape == (0,)


@pytest.mark.parametrize("kind", LINEAR_KINDS)
def test_bag_survives_sizes_and_tensors(kind: str) -> None:
    model = fit_bag(kind, examples())
    again = BagOfWords.of({"kind": kind} | model.sizes(), model.tensors())
    texts = [e.text for e in examples()]
    assert again.logits(texts).tolist() == model.logits(texts).tolist()


def test_weights_of_other_words_are_refused() -> None:
    model = fit_bag("svm", examples())
    with pytest.raises(ValueError, match=r"weights \(2, 9\) .* must be \[2, 8\]"):
        BagOfWords.of({"kind": "svm", "words": 8, "bias": 0.0}, model.tensors())


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"words": np.array(list(b"wine\nwine"), np.uint8)}, "2 words, 1 different"),
        ({"words": np.array(list(b"a\na\nb"), np.uint8)}, "3 words, 2 different"),
        ({"words": np.array(list(b"wine\ndisk"))}, "letters of int64"),
        ({"words": np.array(list(b"\xff\n"), np.uint8)}, "decode"),
        ({"weights": np.ones((2, 2))}, "of float64"),
        ({"weights": np.float32(1.0)}, r"weights \(\)"),
        ({"weights": np.array([[1, 1], [1, np.nan]], np.float32)}, "weights nan"),
    ],
)
def test_bad_tensors_are_refused(damage: dict[str, np.ndarray], reason: str) -> None:
    model = BagOfWords("svm", ["wine", "disk"], np.ones((2, 2), dtype=np.float32), 0.0)
    with pytest.raises(ValueError, match=reason):
        BagOfWords.of({"kind": "svm"} | model.sizes(), dict(model.tensors()) | damage)


@pytest.mark.parametrize("bias", [np.inf, np.nan, 1e300, 10**400])
def test_useless_bias_is_refused(bias: float) -> None:
    model = BagOfWords("svm", ["wine"], np.ones((2, 1), dtype=np.float32), 0.0)
    with pytest.raises(ValueError, match=r"bias .* must be a finite number"):
        BagOfWords.of({"kind": "svm", "words": 1, "bias": bias}, model.tensors())
