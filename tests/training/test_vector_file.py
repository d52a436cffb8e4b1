from __future__ import annotations

import gzip
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from gensim import downloader
from gensim.models import KeyedVectors

from tres_scrapy.training.vector_file import read_vectors

WORDS = ["The", "cheese", "the", "U.S.", "10", "k\u00e4se", "new_york", "x", "milk"]
KEYED = ["keyed", "keyed by protocol 5", "keyed with the matrix beside"]
READ = ["the", "cheese", "k\u00e4se", "milk"]
MATRIX = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


def keyed() -> KeyedVectors:
    vectors = KeyedVectors(vector_size=5)
    vectors.add_vectors(WORDS, MATRIX)
    return vectors


def write(path: Path, kind: str) -> str:
    if kind == "keyed":
        keyed().save(str(path))
    elif kind == "keyed with the matrix beside":
        keyed().save(str(path), sep_limit=0)
    elif kind == "keyed by protocol 5":
        keyed().save(str(path), pickle_protocol=5)
    else:
        header = kind != "glove"
        keyed().save_word2vec_format(str(path), binary=kind == "binary", write_header=header)
    return str(path)


@pytest.mark.slow  # gensim starts a process when it is loaded
@pytest.mark.parametrize("kind", ["text", "binary", "glove", *KEYED])
def test_every_kind_is_read(tmp_path: Path, kind: str) -> None:
    vectors = read_vectors(write(tmp_path / "v", kind), words=100)
    assert vectors.words == READ
    assert np.allclose(vectors.matrix, MATRIX[[0, 1, 5, 8]])
    assert vectors.matrix.dtype == np.float32


@pytest.mark.parametrize("kind", ["text", "binary", "glove"])
def test_gzip_is_recognised(tmp_path: Path, kind: str) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(Path(write(tmp_path / "v", kind)).read_bytes()))
    assert read_vectors(str(packed), words=2).words == READ[:2]


def test_a_word_may_hold_spaces(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("the 1 2\n. . . 3 4\nmilk 5 6 \n")
    vectors = read_vectors(str(tmp_path / "glove.txt"), words=9)
    assert dict(zip(vectors.words, vectors.matrix.tolist(), strict=True)) == {
        "the": [1, 2],
        "milk": [5, 6],
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "has 0 words"),
        (b"2 0\n", "first line is b'2 0'"),
        (b"2 9999999999999\n", "first line is b'2 9999999999999'"),
        (b"two words\n", "invalid literal"),
        (b"2 3\n", "has 0 words"),
        (b"2 3\nmilk abc", "smaller than requested"),
        (b"milk 1 2\nwine 1\n", "line 2 has 1 numbers, not 2"),
        (b"milk 1 2\nwine 1 x\n", "could not convert"),
        (b"milk 1 nan\n", "finite"),
        (b"milk" + b" 1" * 513 + b"\n", "first line is b'milk 1 1"),
        (b"milk 1 2\nwine 1 2" + b" 1" * 500_000, "line 2 has 1,000,000 bytes or more"),
        (b"2 3\n\xff" + b"x" * 100_000, "a word has 10,000 bytes or more"),
        (b"10 1 2\n", "has 0 words"),
        (gzip.compress(b"milk 1 2\n" * 99, mtime=0)[:-12], "ended before"),
        (gzip.compress(b"milk 1 2\n", mtime=0)[:10] + b"\xff" * 20, "decompressing"),
        (pickle.dumps(Path("x")), "no KeyedVectors of gensim 4"),
        (b"\x80\x04\x95", "no KeyedVectors of gensim 4"),
    ],
)
def test_foreign_vector_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        read_vectors(str(tmp_path / "v"), words=9)


@pytest.mark.slow  # gensim starts a process when it is loaded
@pytest.mark.parametrize("shape", [(9,), (9, 513), (9, 5, 1)])
def test_other_shape_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = write(tmp_path / "v", "keyed with the matrix beside")
    np.save(f"{path}.vectors.npy", np.ones(shape, dtype=np.float32))
    with pytest.raises(ValueError, match=r"the vectors have shape \(9,"):
        read_vectors(path, words=9)


@pytest.mark.slow  # gensim starts a process when it is loaded
def test_pickled_matrix_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "v", "keyed with the matrix beside")
    for save in (np.savez, lambda file, array: np.save(file, array.astype(object))):
        with Path(f"{path}.vectors.npy").open("wb") as file:
            save(file, MATRIX)
        with pytest.raises(ValueError, match="is not a word2vec, GloVe or KeyedVectors file"):
            read_vectors(path, words=9)


class Hostile:
    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.victim,)


@pytest.mark.slow  # gensim starts a process when it is loaded
def test_pickle_runs_no_code(tmp_path: Path) -> None:
    vectors = keyed()
    vectors.extra = Hostile(tmp_path / "victim")
    vectors.save(str(tmp_path / "v.kv"))
    with pytest.raises(ValueError, match=r"no KeyedVectors of gensim 4 \("):
        read_vectors(str(tmp_path / "v.kv"), words=9)
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    "module", ["numpy.f2py.__main__", "numpy.lib._utils_impl", "numpy", "os", "builtins"]
)
@pytest.mark.parametrize("name", ["dtype", "system", "save", "eval"])
def test_pickle_imports_no_module(tmp_path: Path, module: str, name: str) -> None:
    imported = set(sys.modules)
    (tmp_path / "v.kv").write_bytes(f"\x80\x02c{module}\n{name}\n.".encode("latin-1"))
    with pytest.raises(ValueError, match=r"no KeyedVectors of gensim 4 \("):
        read_vectors(str(tmp_path / "v.kv"), words=9)
    assert set(sys.modules) == imported


class Aimed:
    """An object array over bytes, which numpy would follow as pointers."""

    def __reduce__(self) -> tuple[object, ...]:
        return np.ndarray, ((1,), np.dtype("O"), b"\x01" * 8)


@pytest.mark.slow  # gensim starts a process when it is loaded
def test_pickle_makes_no_numpy_object(tmp_path: Path) -> None:
    vectors = keyed()
    vectors.vectors = Aimed()
    vectors.save(str(tmp_path / "v.kv"), separately=[])
    with pytest.raises(ValueError, match=r"no KeyedVectors of gensim 4 \("):
        read_vectors(str(tmp_path / "v.kv"), words=9)


def test_downloader_fetches_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "v", "text")
    monkeypatch.setattr(downloader, "load", lambda name, *, return_path: (name, path)[return_path])
    assert read_vectors("glove-small", words=9).words == READ


def test_downloader_error_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(name: str, *, return_path: bool) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(downloader, "load", offline)
    with pytest.raises(ValueError, match=r"'glove-small' are not a file.*no route"):
        read_vectors("glove-small", words=9)


def test_missing_file_skips_the_downloader() -> None:
    with pytest.raises(ValueError, match=r"'missing.bin' must be a file, or a name"):
        read_vectors("missing.bin", words=9)
