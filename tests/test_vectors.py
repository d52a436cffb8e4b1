from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from tres_scrapy.topic.vectors import WordVectors, sha256, train_vectors

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def vectors() -> WordVectors:
    words = ["the", "cheese", "k\u00e4se", "zero"]
    matrix = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    matrix[3] = 0
    return WordVectors(words, matrix)


def test_ids_keep_order_and_repetition_and_drop_unknown_words(vectors: WordVectors) -> None:
    ids = vectors.ids(["cheese", "unknown", "the", "cheese"])
    assert ids.tolist() == [1, 0, 1]
    assert ids.dtype == np.int64
    assert vectors.ids([]).shape == (0,)


def test_unit_rows_have_length_one_and_a_zero_row_stays_zero(vectors: WordVectors) -> None:
    rows = vectors.unit(["cheese", "zero"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0])


def test_saved_vectors_come_back_within_half_a_level(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v.npz")
    loaded = WordVectors.load(tmp_path / "v.npz")
    half_level = np.abs(vectors.matrix).max(axis=1, keepdims=True) / 127 / 2
    assert loaded.words == vectors.words
    assert (np.abs(loaded.matrix - vectors.matrix) <= half_level + 1e-6).all()
    assert loaded.matrix.dtype == np.float32


def test_saving_loaded_vectors_writes_the_same_bytes(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "a.npz")
    WordVectors.load(tmp_path / "a.npz").save(tmp_path / "b.npz")
    assert sha256(tmp_path / "a.npz") == sha256(tmp_path / "b.npz")


def test_a_row_for_each_word_is_required() -> None:
    with pytest.raises(ValueError, match=r"a row per word"):
        WordVectors(["one", "two"], np.zeros((3, 2), np.float32))


def test_a_file_that_is_no_vector_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    path.write_bytes(b"not a zip")
    with pytest.raises(ValueError, match=r"not a word vector file"):
        WordVectors.load(path)


def test_pickled_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    words = np.array([["a"], {"b": 1}], dtype=object)
    np.savez(path, words=words, rows=np.zeros((1, 2), np.int8), scale=np.ones(1, np.float32))
    with pytest.raises(ValueError, match=r"not a word vector file"):
        WordVectors.load(path)


def test_rows_and_scales_must_match(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    words = np.frombuffer(b"a\nb", dtype=np.uint8)
    np.savez(path, words=words, rows=np.zeros((2, 2), np.int8), scale=np.ones(3, np.float32))
    with pytest.raises(ValueError, match=r"scales \(3,\)"):
        WordVectors.load(path)


def test_training_is_the_same_for_a_seed_and_ranks_words_by_frequency() -> None:
    rng = np.random.default_rng(0)
    words = ["cheese", "milk", "cow", "disk", "cable"]
    sentences = [rng.choice(words, 20, p=[0.4, 0.3, 0.15, 0.1, 0.05]).tolist() for _ in range(30)]
    first, second = (train_vectors(sentences, seed=3, vector_size=8) for _ in range(2))
    assert first.words == words
    assert np.array_equal(first.matrix, second.matrix)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the word pairs in shared/data")
@pytest.mark.parametrize(("pairs", "least"), [("wordsim353.txt", 0.6), ("men3k.txt", 0.6)])
def test_the_shipped_vectors_rank_word_pairs_as_people_do(pairs: str, least: float) -> None:
    vectors = WordVectors.load(Path(__file__).parents[1] / "models" / "vectors" / "english.npz")
    lines = (DATA / pairs).read_text(encoding="utf-8").lower().splitlines()
    rows = [line.split("\t") for line in lines]
    known = [(a, b, float(s)) for a, b, s in rows if a in vectors and b in vectors]
    cosines = [vectors.unit([a])[0] @ vectors.unit([b])[0] for a, b, _ in known]
    assert len(known) > 0.9 * len(rows)
    assert spearmanr(cosines, [s for _, _, s in known]).statistic > least
