"""`tres vectors`: train word vectors on texts, or convert existing ones."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from tres_scrapy.cli.command import Command, Decorator, option, refuse
from tres_scrapy.topic.classifier import MOST_DIMENSIONS, MOST_WORDS
from tres_scrapy.training.document import Sentences
from tres_scrapy.training.word_vectors import MAX_WORDS, Passes, read_vectors, train_vectors
from tres_scrapy.url.message import TresError

LIMITS: Final = {
    "words": (1, MOST_WORDS),
    "dimension": (1, MOST_DIMENSIONS),
    "epochs": (1, 100),
    "workers": (1, 64),
    "seed": (0, 2**32 - 1),
}


def _number(name: str, default: int, about: str, group: str = "Training") -> Decorator:
    """Return the option of a whole number."""
    return option(
        f"--{name}",
        metavar="N",
        type=click.IntRange(*LIMITS[name]),
        default=default,
        help=f"{about} (default: {default})",
        group=group,
    )


@click.command(
    cls=Command,
    syntax="(FILE... | --from FILE|NAME) --output FILE",
    epilog="Example: tres vectors pages.jsonl --output models/vectors/my.npz",
)
@click.argument("files", nargs=-1)
@option("--from", "source", metavar="FILE|NAME", help="vectors to convert")
@option("--output", metavar="FILE", type=Path, required=True, help="file to write")
@_number("words", MAX_WORDS, "keep the N most frequent words, 5 MB at 100 dimensions", "Options")
@_number("dimension", 100, "numbers per vector")
@_number("epochs", 5, "passes over the texts")
@_number("seed", 1, "random seed")
@_number("workers", 1, "threads; with more than one, results differ from run to run")
def command(files: tuple[str, ...], source: str | None, output: Path, **numbers: int) -> None:
    """Write word vectors for topic packs: lower-case words, one byte per number.

    Train them by skip-gram on text files, or convert existing vectors with --from. --from takes a
    word2vec file (text or binary) or a GloVe file, both also as .gz, or a name of gensim's
    downloader such as glove-wiki-gigaword-100, which is saved in ~/gensim-data. Of KeyedVectors of
    gensim, give what `save_word2vec_format` writes.
    """
    if bool(files) == bool(source):
        refuse("texts, or --from FILE|NAME", files)
    if output.is_dir():
        raise TresError(f"--output {str(output)!r} is a folder: name a file")
    output.parent.mkdir(parents=True, exist_ok=True)
    if source:
        vectors = read_vectors(source, words=numbers["words"])
    else:
        sentences = Passes(Sentences([Path(file) for file in files]), numbers["epochs"])
        vectors = train_vectors(sentences, **numbers)
    vectors.save(output)
    n, d = vectors.matrix.shape
    print(f"{n} words of {d} dimensions written to {output}, {output.stat().st_size / 1e6:.1f} MB")
    print(f"next: tres train TOPIC --vectors {output} ...")
