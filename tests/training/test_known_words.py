from __future__ import annotations

import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from conftest import DATA, PROJECT
from numpy.typing import NDArray
from scipy.stats import spearmanr

from tres_scrapy.topic.classifier import MOST_DIMENSIONS, WordVectors
from tres_scrapy.training.word_vectors import train_vectors
from tres_scrapy.url.whole_file import sha256


@pytest.fixture
def vectors() -> WordVectors:
    words = ["the", "cheese", "k\u00e4se", "zero"]
    matrix = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    matrix[3] = 0
    return WordVectors(words, matrix)


def test_ids_keep_order_and_repetition(vectors: WordVectors) -> None:
    ids = vectors.ids(["cheese", "unknown", "the", "cheese"])
    assert ids.tolist() == [1, 0, 1]
    assert ids.dtype == np.int64
    assert vectors.ids([]).shape == (0,)


def test_unit_rows_have_length_one(vectors: WordVectors) -> None:
    rows = vectors.unit(["cheese", "zero"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0])


def test_saved_vectors_are_close(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v.npz")
    loaded = WordVectors.load(tmp_path / "v.npz")
    half_level = np.abs(vectors.matrix).max(axis=1, keepdims=True) / 127 / 2
    assert loaded.words == vectors.words
    assert (np.abs(loaded.matrix - vectors.matrix) <= half_level + 1e-6).all()
    assert loaded.matrix.dtype == np.float32


def test_saving_again_changes_nothing(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "a.npz")
    WordVectors.load(tmp_path / "a.npz").save(tmp_path / "b.npz")
    assert sha256(tmp_path / "a.npz") == sha256(tmp_path / "b.npz")


def test_failed_save_keeps_old_file(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors.save(tmp_path / "v.npz")
    before = sha256(tmp_path / "v.npz")
    write = np.savez_compressed

    def fill_the_disk(file: IO[bytes], **arrays: NDArray[Any]) -> None:
        write(file, rows=arrays["rows"])
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fill_the_disk)
    with pytest.raises(OSError, match="disk full"):
        vectors.save(tmp_path / "v.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["v.npz"]
    assert sha256(tmp_path / "v.npz") == before


def test_rows_and_words_must_match() -> None:
    with pytest.raises(ValueError, match=r"a row per word"):
        WordVectors(["one", "two"], np.zeros((3, 2), np.float32))


@pytest.mark.parametrize(
    ("words", "rows", "reason"),
    [
        (["a"], (1, MOST_DIMENSIONS + 1), "or smaller"),
        (["a"], (1, 0), "not empty"),
        (["a", "a"], (2, 2), "2 words, 1 different"),
    ],
)
def test_unreadable_words_are_refused(words: list[str], rows: tuple[int, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        WordVectors(words, np.zeros(rows, np.float32))


def letters(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, dtype=np.uint8)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"words": np.array([["a"], {"b": 1}], dtype=object)}, r"words \(2,\) of object"),
        ({"words": letters(b"a\nb\nc\nd")}, r"\(2, 2\), must be \[3"),
        ({"words": letters(b"a\na")}, "2 words, 1 different"),
        ({"words": letters(b"\xff\nb")}, "decode"),
        ({"rows": np.int8(1)}, r"rows \(\) of int8"),
        ({"rows": np.zeros((2, 2), np.float64)}, r"rows \(2, 2\) of float64"),
        ({"scale": np.ones(3, np.float32)}, r"scale \(3,\) of float32"),
        ({"scale": np.ones(2, np.float64)}, r"scale \(2,\) of float64"),
        ({"scale": np.array([1, np.nan], np.float32)}, "scale nan"),
        ({"scale": np.array([1, 3e38], np.float32)}, "scale 3"),
    ],
)
def test_bad_arrays_are_refused(
    tmp_path: Path, damage: dict[str, NDArray[Any]], reason: str
) -> None:
    whole = {"words": letters(b"a\nb"), "rows": np.zeros((2, 2), np.int8)}
    arrays = whole | {"scale": np.ones(2, np.float32)} | damage
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(ValueError, match=rf"'v.npz' is not a word vector file.*: .*{reason}"):
        WordVectors.load(tmp_path / "v.npz")


def claim_too_much(path: Path) -> None:
    header = BytesIO()
    claim = {"descr": "|i1", "fortran_order": False, "shape": (10**9, 100)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("rows.npy", header.getvalue())


def break_the_deflation(path: Path) -> None:
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        start = file.getinfo("rows.npy").header_offset
    content[start + 60 : start + 70] = b"\xff" * 10
    path.write_bytes(content)


def write_one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros((2, 2), np.int8))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (claim_too_much, "rows (1000000000, 100)"),
        (break_the_deflation, "decompressing"),
        (write_one_array, "zip"),
        (lambda path: path.write_bytes(b"not a zip"), "zip"),
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), "zip"),
        (lambda path: zipfile.ZipFile(path, "w").close(), "no item named 'rows.npy'"),
        (Path.unlink, "no such file"),
    ],
)
def test_foreign_file_is_one_line(
    vectors: WordVectors, tmp_path: Path, damage: Callable[[Path], None], reason: str
) -> None:
    vectors.save(tmp_path / "v.npz")
    damage(tmp_path / "v.npz")
    with pytest.raises(ValueError, match=r"^'v.npz' is not a word vector file") as caught:
        WordVectors.load(tmp_path / "v.npz")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_interrupted_vectors_are_no_damage(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors.save(tmp_path / "v.npz")

    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupt)
    with pytest.raises(KeyboardInterrupt):
        WordVectors.load(tmp_path / "v.npz")


@pytest.mark.slow  # gensim starts a process when it is loaded
def test_vector_training_is_repeatable() -> None:
    rng = np.random.default_rng(0)
    words = ["cheese", "milk", "cow", "disk", "cable"]
    sentences = [rng.choice(words, 20, p=[0.4, 0.3, 0.15, 0.1, 0.05]).tolist() for _ in range(30)]
    first, second = (train_vectors(sentences, seed=3, dimension=8) for _ in range(2))
    assert first.words == words
    assert np.array_equal(first.matrix, second.matrix)


@pytest.mark.slow  # gensim starts a process when it is loaded
def test_rare_words_train_nothing() -> None:
    with pytest.raises(ValueError, match=r"hold 7 words and 1 of them 5 times or more"):
        train_vectors([["milk"] * 5, ["cheese", "wine"]], seed=0)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the word pairs in shared/data")
@pytest.mark.parametrize(("pairs", "least"), [("wordsim353.txt", 0.6), ("men3k.txt", 0.62)])
def test_shipped_vectors_rank_like_people(pairs: str, least: float) -> None:
    vectors = WordVectors.load(PROJECT / "models" / "vectors" / "english.npz")
    lines = (DATA / pairs).read_text(encoding="utf-8").lower().splitlines()
    rows = [line.split("\t") for line in lines]
    known = [(a, b, float(s)) for a, b, s in rows if a in vectors and b in vectors]
    cosines = [vectors.unit([a])[0] @ vectors.unit([b])[0] for a, b, _ in known]
    assert len(known) > 0.9 * len(rows)
    assert spearmanr(cosines, [s for _, _, s in known]).statistic > least
