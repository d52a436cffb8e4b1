"""Readers of word vector files: word2vec, GloVe, KeyedVectors (P 3.3)."""

from __future__ import annotations

import gzip
import logging
import pickle
import re
import zlib
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.lib import format as npy

from tres_scrapy.config.extra import require
from tres_scrapy.page.text import tokenise
from tres_scrapy.topic.vectors import MOST_DIMENSIONS, WordVectors
from tres_scrapy.url.message import reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

GZIP_MAGIC: Final = b"\x1f\x8b"
PICKLE_MAGIC: Final = b"\x80"
LONGEST_LINE: Final = 1_000_000
LONGEST_WORD: Final = 10_000  # in bytes
NAME: Final = re.compile(r"[\w-]+")
# the parts of a pickled array in numpy 1 and numpy 2
ARRAY_PARTS: Final = frozenset(
    [
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy.core.numeric", "_frombuffer"),
        ("numpy._core.numeric", "_frombuffer"),
    ]
)


def read_vectors(source: str, *, words: int) -> WordVectors:
    """Read the first `words` words of a file, or of vectors that gensim's downloader knows.

    Words are lower-cased, and the first spelling wins; words that `tokenise` never yields are left
    out. Raise ValueError or OSError if the source cannot be read.
    """
    path = Path(source) if Path(source).is_file() else _download(source)
    kept: dict[str, Any] = {}
    with _open(path) as file:
        try:
            for name, row in _rows(path, file):
                word = name.lower()
                if word not in kept and tokenise(word) == [word]:
                    kept[word] = np.asarray(row, dtype=np.float32)
                    if len(kept) == words:
                        break
            matrix = np.array(list(kept.values()), dtype=np.float32)  # [V, d]
        except (EOFError, TypeError, ValueError, zlib.error) as error:
            msg = f"{path.name!r} is not a word2vec, GloVe or KeyedVectors file: {reason(error)}"
            raise ValueError(msg) from error
    if not kept or not np.isfinite(matrix).all():
        msg = f"{path.name!r} has {len(kept)} words, must have some, all with finite numbers"
        raise ValueError(msg)
    return WordVectors(list(kept), matrix)


def _download(name: str) -> Path:
    if not NAME.fullmatch(name):
        msg = f"vectors {name!r} must be a file, or a name that gensim's downloader knows"
        raise ValueError(msg)
    require("train", "gensim's downloader")
    from gensim import downloader  # noqa: PLC0415 - takes a second, only needed here

    logging.getLogger(downloader.__name__).setLevel(logging.CRITICAL)  # offline it logs a traceback
    try:
        # only the path: otherwise gensim runs a Python module that it downloads
        return Path(downloader.load(name, return_path=True))
    except Exception as error:  # gensim raises plain Exception on a wrong checksum
        msg = f"vectors {name!r} are not a file, and gensim's downloader failed: {error}"
        raise ValueError(msg) from error


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def _rows(path: Path, file: IO[bytes]) -> Iterable[tuple[str, Any]]:
    """Return words and rows; the first bytes decide the kind of file."""
    first = file.readline(LONGEST_LINE)
    header = first.split()
    if first.startswith(PICKLE_MAGIC):
        file.seek(0)
        return _keyed_rows(path, file)
    dimension = int(header[1]) if len(header) == 2 else len(header) - 1
    if header and not 0 < dimension <= MOST_DIMENSIONS:
        msg = f"the first line is {first.strip()!r}, must give 1 to {MOST_DIMENSIONS} dimensions"
        raise ValueError(msg)
    if len(header) != 2:  # GloVe has no line of sizes
        file.seek(0)
        return _text_rows(file, dimension)
    start = file.tell()
    sample = file.readline(LONGEST_LINE)
    file.seek(start)
    return (_text_rows if _is_text(sample, dimension) else _binary_rows)(file, dimension)


def _is_text(line: bytes, dimension: int) -> bool:
    try:
        return len([float(number) for number in line.split()[-dimension:]]) == dimension
    except ValueError:
        return False


def _text_rows(file: IO[bytes], dimension: int) -> Iterator[tuple[str, list[bytes]]]:
    lines = iter(lambda: file.readline(LONGEST_LINE), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) == LONGEST_LINE:
            msg = f"line {number} has {LONGEST_LINE:,} bytes or more"
            raise ValueError(msg)
        word, *row = line.rstrip().rsplit(b" ", dimension)  # some GloVe words contain spaces
        if not row or len(row) != dimension:
            msg = f"line {number} has {len(row)} numbers, not {dimension}"
            raise ValueError(msg)
        yield word.decode("utf-8", "replace"), row


def _binary_rows(file: IO[bytes], dimension: int) -> Iterator[tuple[str, Any]]:
    while word := _binary_word(file):
        row = np.frombuffer(file.read(4 * dimension), dtype="<f4", count=dimension)
        yield word.decode("utf-8", "replace"), row


def _binary_word(file: IO[bytes]) -> bytes:
    letters = list(islice(iter(lambda: file.read(1).strip(b" "), b""), LONGEST_WORD))
    if len(letters) == LONGEST_WORD:
        msg = f"a word has {LONGEST_WORD:,} bytes or more"
        raise ValueError(msg)
    return b"".join(letters).lstrip(b"\n")


def _keyed_rows(path: Path, file: IO[bytes]) -> Iterable[tuple[str, Any]]:
    try:
        state = _KeyedUnpickler(file).load().state
        words = [str(word) for word in state["index_to_key"]]
        matrix = _matrix(state["vectors"]) if "vectors" in state else None
    except Exception as error:  # a damaged pickle may raise any error
        msg = (
            f"the pickle has no KeyedVectors of gensim 4 ({reason(error)}); save the `wv` of a "
            "model"
        )
        raise ValueError(msg) from error
    if matrix is None:  # gensim stores a large matrix in a separate file
        matrix = npy.open_memmap(f"{path}.vectors.npy", mode="r")
    if matrix.ndim != 2 or matrix.shape[1] > MOST_DIMENSIONS:
        msg = f"the vectors have shape {matrix.shape!r}, not [V, {MOST_DIMENSIONS}] or smaller"
        raise ValueError(msg)
    return zip(words, matrix, strict=True)


def _matrix(array: _State) -> NDArray[np.floating[Any]]:
    """Return the numbers of a pickled array."""
    if array.state is None:  # pickle protocol 5
        data, kind, shape, order = array.arguments
    else:
        _, shape, kind, by_column, data = array.state
        order = "F" if by_column else "C"
    dtype = np.dtype(f"{kind.state[1]}{kind.arguments[0]}")
    if dtype.kind != "f":
        msg = f"the vectors are {dtype}, must be floating-point numbers"
        raise ValueError(msg)
    return np.frombuffer(data, dtype).reshape(shape, order=order)


class _State:
    """Replaces any class or function: stores its arguments and state, runs no code."""

    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _KeyedUnpickler(pickle.Unpickler):
    """Reads numbers, strings, lists and the parts of arrays; rejects all other classes.

    Numpy classes are not loaded either: an ndarray of objects over bytes is an arbitrary pointer.
    """

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("gensim.") or (module, name) in ARRAY_PARTS:
            return _State
        raise pickle.UnpicklingError(f"{module}.{name}")
