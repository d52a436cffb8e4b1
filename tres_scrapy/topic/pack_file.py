"""Reads and writes the files of a topic pack, in which is no code (P 3.3).

A pack is a directory `models/<topic>/` with `topic.toml` and the weights that it names. Packs share
the word vectors in a directory beside them.
"""

from __future__ import annotations

import re
import stat
import tomllib
from hashlib import sha256 as sha256_of
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tomli_w
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from tres_scrapy.config.parser import CALLABLE
from tres_scrapy.links.code import CODES
from tres_scrapy.links.model import LinkPrior
from tres_scrapy.topic.classifier import FIELDS, LINEAR_KINDS, BagOfWords, WordVectors
from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.url.whole_file import check_numbers, sha256, whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.topic.classifier import Classifier

MOST_FACTS: Final = 4 * 2**20  # limit of topic.toml in bytes
MOST_BYTES: Final = 2**30  # limit of each file that it names
LARGEST_WEIGHT: Final = 30.0  # of what a link says


def read_facts(directory: Path) -> dict[str, Any]:
    """Return what `topic.toml` says; raise ValueError or OSError if it is not such a file."""
    path = _find_file(directory, TOPIC_FILE, within=directory, most=MOST_FACTS)
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_classifier(directory: Path, facts: Mapping[str, Any]) -> Classifier:
    """Build the model of the recorded kind; raise ValueError or KeyError if a file differs."""
    sizes = facts["classifier"]
    tensors = _read_tensors(directory, sizes)
    if sizes["kind"] in {*LINEAR_KINDS, FIELDS}:
        return BagOfWords.of(sizes, tensors)
    from tres_scrapy.topic import bilstm  # noqa: PLC0415 - it loads PyTorch

    if sizes["kind"] not in bilstm.KINDS:
        kinds = (*bilstm.KINDS, *LINEAR_KINDS, FIELDS)
        raise ValueError(f"classifier kind {sizes['kind']!r} is unknown, must be one of {kinds}")
    models = directory.resolve().parent
    vectors = WordVectors.load(_verified(directory, facts["vectors"], within=models))
    return bilstm.BiLstm.of(sizes, tensors, vectors)


def read_prior(directory: Path, facts: Mapping[str, Any]) -> LinkPrior:
    """Return the weights of what links say; raise ValueError or KeyError if they are impossible."""
    tensors = _read_tensors(directory, facts)
    codes, weights = tensors["codes"], tensors["weights"]
    if codes.shape != weights.shape or codes.ndim != 1 or codes.dtype != np.uint32:
        raise ValueError(f"{facts['file']!r} must hold codes and as many weights")
    if len(codes) and codes.max() >= CODES:
        raise ValueError(f"{facts['file']!r} has a code of no link")
    if weights.dtype != np.float32 or not (np.abs(weights) <= LARGEST_WEIGHT).all():
        raise ValueError(f"{facts['file']!r} must hold weights of {LARGEST_WEIGHT:g} or less")
    return LinkPrior(codes, weights)


def _read_tensors(directory: Path, facts: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    # read, not memory-mapped: later changes of the file have no effect
    return load_tensors(_verified(directory, facts, within=directory).read_bytes())


def _verified(directory: Path, facts: Mapping[str, Any], *, within: Path) -> Path:
    """Return the path of a file; raise ValueError if its hash is not the recorded one."""
    path = _find_file(directory, facts["file"], within=within, most=MOST_BYTES)
    if sha256(path) != facts["sha256"]:
        msg = f"file {facts['file']!r} does not have the SHA-256 that {TOPIC_FILE} records"
        raise ValueError(msg)
    return path


def _find_file(directory: Path, name: str, *, within: Path, most: int) -> Path:
    """Return the path of an ordinary file inside `within`, of `most` bytes or less."""
    path = (directory / name).resolve()
    if not path.is_relative_to(within.resolve()):
        raise ValueError(f"file {name!r} lies outside the directory {within.name!r}")
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > most:
        raise ValueError(f"file {name!r} must be an ordinary file of {most:,} bytes or less")
    return path


def strings(name: str, values: object) -> list[str]:
    """Return a list of strings; raise TypeError for anything else."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{name} {values!r} must be a list of strings")
    return values


def judge_name(value: str) -> str:
    """Return the name of a function, or ""; raise ValueError for anything else."""
    if value and not re.fullmatch(CALLABLE, value):  # it is printed to terminals
        raise ValueError(f"judge {value!r} must be package.module:callable, or empty")
    return value


def language_code(language: str) -> str:
    """Return a code of two letters, or ""; raise ValueError for anything else."""
    if not re.fullmatch(r"([a-z]{2})?", language):  # it is printed to terminals
        raise ValueError(f"language {language!r} must be a code of two small letters, or empty")
    return language


def number(name: str, value: float) -> float:
    """Return a number; raise ValueError if it is not finite or too large."""
    check_numbers(name, value)
    return float(value)


def share(name: str, value: float) -> float:
    """Return a number between 0 and 1; raise ValueError for any other."""
    if not 0 < value < 1:
        raise ValueError(f"{name} {value!r} must lie between 0 and 1")
    return value


def write_pack(
    directory: Path,
    facts: Mapping[str, Any],
    classifier: Classifier,
    prior: LinkPrior | None = None,
) -> None:
    """Write facts, weights and what is known of links as a pack; the same input, the same bytes.

    A process killed at any moment leaves the old pack or the new one. Raise TypeError if a fact
    cannot be written as TOML.
    """
    weights = {"classifier": save_tensors(dict(classifier.tensors()))}
    if prior is not None:
        weights["links"] = save_tensors(prior._asdict())
    named = {
        name: {"file": f"{name}-{digest[:12]}.safetensors", "sha256": digest}
        for name, digest in ((name, sha256_of(part).hexdigest()) for name, part in weights.items())
    }
    complete = {**facts, **{name: facts.get(name, {}) | file for name, file in named.items()}}
    # source names come from file names, which may not be valid UTF-8
    encoded = tomli_w.dumps(complete).encode("utf-8", "replace")
    directory.mkdir(parents=True, exist_ok=True)
    for name, part in weights.items():
        with whole_file(directory / named[name]["file"]) as file:
            file.write(part)
    with whole_file(directory / TOPIC_FILE) as file:
        file.write(encoded)
    kept = {each["file"] for each in named.values()}
    for name in ("classifier", "links"):
        for old in directory.glob(f"{name}*.safetensors"):
            if old.name not in kept:
                old.unlink()
