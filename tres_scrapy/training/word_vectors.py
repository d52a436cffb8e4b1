"""Word vectors: training by skip-gram, and reading of word2vec and GloVe files (P 2.3, 3.3)."""

from __future__ import annotations

import gzip
import logging
import re
import zlib
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import numpy as np
from tqdm import tqdm

from tres_scrapy.config.extra import require
from tres_scrapy.page.place import tokenise
from tres_scrapy.topic.classifier import MOST_DIMENSIONS, WordVectors
from tres_scrapy.url.message import TresError, reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tres_scrapy.training.document import Sentences

MAX_WORDS: Final = 50_000
MIN_COUNT: Final = 5
GZIP_MAGIC: Final = b"\x1f\x8b"
PICKLE_MAGIC: Final = b"\x80"
LONGEST_LINE: Final = 1_000_000
LONGEST_WORD: Final = 10_000  # in bytes
NAME: Final = re.compile(r"[\w-]+")


def train_vectors(
    sentences: Iterable[list[str]],
    *,
    seed: int,
    words: int = MAX_WORDS,
    dimension: int = 100,
    epochs: int = 5,
    workers: int = 1,
) -> WordVectors:
    """Train skip-gram vectors of the most frequent words; one worker makes them reproducible.

    The sentences are read `epochs` + 1 times. Raise TresError if too few words repeat.
    """
    require("train", "training word vectors")
    from gensim.models import Word2Vec  # noqa: PLC0415 - takes a second, only needed here

    model = Word2Vec(
        sg=1,
        seed=seed,
        vector_size=dimension,
        epochs=epochs,
        workers=workers,
        min_count=MIN_COUNT,
        max_final_vocab=words,
    )
    model.build_vocab(sentences)
    if len(model.wv) < 2:
        raise TresError(
            f"the texts hold {model.corpus_total_words} words and {len(model.wv)} of them "
            f"{MIN_COUNT} times or more, must be two or more: add texts"
        )
    model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    return WordVectors(list(model.wv.index_to_key), model.wv.vectors)


class Passes:
    """Sentences that can be read repeatedly: for the vocabulary, then for each epoch."""

    def __init__(self, sentences: Sentences, epochs: int) -> None:
        self._sentences = sentences
        names = (f"epoch {n} of {epochs}" for n in range(1, epochs + 1))
        self._names = chain(["vocabulary"], names)
        self._total: int | None = None

    def __iter__(self) -> Iterator[list[str]]:
        with tqdm(desc=next(self._names), total=self._total, unit=" words", unit_scale=True) as bar:
            for sentence in self._sentences:
                bar.update(len(sentence))
                yield sentence
            self._total = int(bar.n)


def read_vectors(source: str, *, words: int) -> WordVectors:
    """Read the first `words` words of a file, or of vectors that gensim's downloader knows.

    Words are lower-cased, and the first spelling wins; words that `tokenise` never yields are left
    out. Raise TresError or OSError if the source cannot be read.
    """
    path = Path(source) if Path(source).is_file() else _download(source)
    kept: dict[str, Any] = {}
    with _open(path) as file:
        try:
            for name, row in _rows(file):
                word = name.lower()
                if word not in kept and tokenise(word) == [word]:
                    kept[word] = np.asarray(row, dtype=np.float32)
                    if len(kept) == words:
                        break
            matrix = np.array(list(kept.values()), dtype=np.float32)  # [V, d]
        except (EOFError, TypeError, ValueError, zlib.error) as error:
            msg = f"{path.name!r} is not a word2vec or GloVe file: {reason(error)}"
            raise TresError(msg) from error
    if not kept or not np.isfinite(matrix).all():
        msg = f"{path.name!r} has {len(kept)} words, must have some, all with finite numbers"
        raise TresError(msg)
    return WordVectors(list(kept), matrix)


def _download(name: str) -> Path:
    if not NAME.fullmatch(name):
        msg = f"vectors {name!r} must be a file, or a name that gensim's downloader knows"
        raise TresError(msg)
    require("train", "gensim's downloader")
    from gensim import downloader  # noqa: PLC0415 - takes a second, only needed here

    logging.getLogger(downloader.__name__).setLevel(logging.CRITICAL)  # offline it logs a traceback
    try:
        # only the path: otherwise gensim runs a Python module that it downloads
        return Path(downloader.load(name, return_path=True))
    except Exception as error:  # gensim raises plain Exception on a wrong checksum
        msg = f"vectors {name!r} are not a file, and gensim's downloader failed: {error}"
        raise TresError(msg) from error


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def _rows(file: IO[bytes]) -> Iterable[tuple[str, Any]]:
    """Return words and rows; the first bytes decide the kind of file."""
    first = file.readline(LONGEST_LINE)
    header = first.split()
    if first.startswith(PICKLE_MAGIC):
        raise TresError("it is a pickle: save it with `save_word2vec_format` of gensim")
    dimension = int(header[1]) if len(header) == 2 else len(header) - 1
    if header and not 0 < dimension <= MOST_DIMENSIONS:
        msg = f"the first line is {first.strip()!r}, must give 1 to {MOST_DIMENSIONS} dimensions"
        raise TresError(msg)
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
            raise TresError(f"line {number} has {LONGEST_LINE:,} bytes or more")
        word, *row = line.rstrip().rsplit(b" ", dimension)  # some GloVe words contain spaces
        if not row or len(row) != dimension:
            raise TresError(f"line {number} has {len(row)} numbers, not {dimension}")
        yield word.decode("utf-8", "replace"), row


def _binary_rows(file: IO[bytes], dimension: int) -> Iterator[tuple[str, Any]]:
    while word := _binary_word(file):
        row = np.frombuffer(file.read(4 * dimension), dtype="<f4", count=dimension)
        yield word.decode("utf-8", "replace"), row


def _binary_word(file: IO[bytes]) -> bytes:
    letters = list(islice(iter(lambda: file.read(1).strip(b" "), b""), LONGEST_WORD))
    if len(letters) == LONGEST_WORD:
        raise TresError(f"a word has {LONGEST_WORD:,} bytes or more")
    return b"".join(letters).lstrip(b"\n")
