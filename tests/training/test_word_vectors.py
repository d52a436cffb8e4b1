from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from gensim import downloader
from gensim.models import KeyedVectors

from tres_scrapy.training.word_vectors import read_vectors

WORDS = ["The", "cheese", "the", "U.S.", "10", "k\u00e4se", "new_york", "x", "milk"]
READ = ["the", "cheese", "k\u00e4se", "milk"]
MATRIX = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


def keyed() -> KeyedVectors:
    vectors = KeyedVectors(vector_size=5)
    vectors.add_vectors(WORDS, MATRIX)
    return vectors


def write(path: Path, kind: str) -> str:
    header = kind != "glove"
    keyed().save_word2vec_format(str(path), binary=kind == "binary", write_header=header)
    return str(path)


@pytest.mark.slow  # gensim starts a process when it is loaded
@pytest.mark.parametrize("kind", ["text", "binary", "glove"])
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
        (b"\x80\x04\x95", "is a pickle: save it with `save_word2vec_format`"),
    ],
)
def test_foreign_vector_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        read_vectors(str(tmp_path / "v"), words=9)


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
