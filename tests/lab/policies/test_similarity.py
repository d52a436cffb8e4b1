import numpy as np
import pytest

from tres_scrapy.lab.policies.inputs import Similarity
from tres_scrapy.topic.classifier import WordVectors

VECTORS = WordVectors(["cheese", "milk", "iron"], np.array([[2, 0], [1, 1], [0, 3]], dtype="f4"))


def test_similarity_is_mean_cosine():
    cosines = Similarity(VECTORS, ["cheese"])(["Cheese!", "milk", "iron", "the unknown", ""])
    assert cosines == pytest.approx([1, np.sqrt(0.5), 0, 0, 0])


def test_vector_length_does_not_matter():
    assert Similarity(VECTORS, ["cheese"])(["cheese and iron"]) == pytest.approx([np.sqrt(0.5)])


def test_keywords_without_a_vector_are_refused():
    with pytest.raises(ValueError, match="no keyword has a word vector"):
        Similarity(VECTORS, ["durian"])
