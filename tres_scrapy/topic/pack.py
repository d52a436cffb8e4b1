"""A topic pack: everything that decides what is relevant, in files that hold no code (P 2.3, 3.3).

A directory `models/<topic>/` with `topic.toml` and `classifier.safetensors`; the word vectors are
shared by packs and lie beside it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from tres_scrapy.topic.classifier import Classifier, Network, encode
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.vectors import WordVectors, sha256

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tres_scrapy.topic.text import Page

TOPIC_FILE: Final = "topic.toml"
WEIGHTS_FILE: Final = "classifier.safetensors"
KIND: Final = "bilstm"
MAX_ANCHORS_KEPT: Final = 50_000
# what reading a stranger's files may raise, whatever they hold
DAMAGE: Final = (OSError, ValueError, TypeError, AttributeError, RuntimeError, SafetensorError)

AnchorFacts = tuple[bool, float]  # a keyword found, P(relevant)


class PackError(ValueError):
    """Says in one line why a directory is no topic pack."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The reward model's verdict on a page and features 4, 5 and 6 of each of its links."""

    probability: float
    relevant: bool
    actions: NDArray[np.float32]  # [links, 3]


class Pack:
    """The keywords, the reward model and the threshold of one topic."""

    def __init__(
        self, name: str, *, threshold: float, keywords: KeywordSet, classifier: Classifier
    ) -> None:
        self.name = name
        self.threshold = threshold
        self.keywords = keywords
        self.classifier = classifier
        self._anchors: dict[str, AnchorFacts] = {}

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read a pack; raise PackError when a file is missing, altered or malformed."""
        try:
            facts = tomllib.loads((directory / TOPIC_FILE).read_text(encoding="utf-8"))
            classifier = _read_classifier(directory, facts)
            keywords = facts["keywords"]
            return cls(
                str(facts["name"]),
                threshold=_share("threshold", facts["threshold"]),
                keywords=KeywordSet(keywords["given"] + keywords["expanded"], keywords["phrases"]),
                classifier=classifier,
            )
        except KeyError as error:
            msg = f"topic pack {directory.name!r}: {TOPIC_FILE} has no {error.args[0]!r}"
            raise PackError(msg) from error
        except DAMAGE as error:
            reason = " ".join(str(error).split())
            msg = f"topic pack {directory.name!r}: {reason}; make it anew with `scrapy tres-train`"
            raise PackError(msg) from error

    def judge(self, pages: Sequence[Page]) -> list[Judgement]:
        """Return the verdict on each page, all pages and their anchors in one batched call."""
        links = [link for page in pages for link in page.links]
        texts = [f"{page.title} {page.text}" for page in pages]
        probabilities, anchors = self._score(texts, [link.anchor for link in links])
        features = self._features(links, anchors)
        ends = np.cumsum([len(page.links) for page in pages], dtype=np.int64)
        return [
            Judgement(float(p), bool(p >= self.threshold), features[end - len(page.links) : end])
            for page, p, end in zip(pages, probabilities, ends, strict=True)
        ]

    def action_features(self, urls: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float32]:
        """Return features 4, 5 and 6 of P 2.4.1, [n, 3], for URLs and their anchor texts."""
        _, facts = self._score([], anchors)
        return self._features(zip(urls, anchors, strict=True), facts)

    def _score(
        self, texts: Sequence[str], anchors: Sequence[str]
    ) -> tuple[NDArray[np.float32], dict[str, AnchorFacts]]:
        """Return P(relevant) of the texts and the facts of the anchors, new ones in one call."""
        # single dict operations only: threads may ask at the same time
        kept = self._anchors
        known = {a: facts for a in dict.fromkeys(anchors) if (facts := kept.get(a)) is not None}
        new = [anchor for anchor in dict.fromkeys(anchors) if anchor not in known]
        encoded = [encode(text, self.classifier.vectors) for text in [*texts, *new]]
        probabilities = self.classifier.probabilities(encoded)
        found = [self.keywords.in_text(anchor) for anchor in new]
        rated = zip(found, probabilities[len(texts) :].tolist(), strict=True)
        fresh = dict(zip(new, rated, strict=True))
        if len(kept) + len(fresh) > MAX_ANCHORS_KEPT:
            kept.clear()
        kept.update(fresh)
        return probabilities[: len(texts)], known | fresh

    def _features(
        self, links: Iterable[tuple[str, str]], facts: Mapping[str, AnchorFacts]
    ) -> NDArray[np.float32]:
        rows = [(self.keywords.in_url(url), *facts[anchor]) for url, anchor in links]
        return np.array(rows, dtype=np.float32).reshape(len(rows), 3)


def write_pack(directory: Path, facts: Mapping[str, Any], network: Network) -> None:
    """Write facts and weights as a pack; the same input gives the same bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / WEIGHTS_FILE).write_bytes(save(network.state_dict()))
    model = facts["classifier"] | {"sha256": sha256(directory / WEIGHTS_FILE)}
    text = "\n".join(_toml({**facts, "classifier": model}))
    (directory / TOPIC_FILE).write_text(f"{text}\n", encoding="utf-8")


def _read_classifier(directory: Path, facts: Mapping[str, Any]) -> Classifier:
    """Build the network of the recorded sizes; raise ValueError or KeyError when a file differs."""
    sizes = facts["classifier"]
    if sizes["kind"] != KIND:
        msg = f"classifier kind {sizes['kind']!r} is unknown, it must be {KIND!r}"
        raise ValueError(msg)
    vectors = WordVectors.load(_verified(directory, facts["vectors"]["file"], facts["vectors"]))
    network = Network(vectors.matrix.shape[1], hidden=sizes["hidden"], dense=sizes["dense"])
    network.load_state_dict(load_file(_verified(directory, WEIGHTS_FILE, sizes)))
    return Classifier(network, vectors, _share("base_rate", sizes["base_rate"]))


def _verified(directory: Path, name: str, facts: Mapping[str, Any]) -> Path:
    """Return the path of a file of the pack whose hash is the recorded one."""
    path = (directory / name).resolve()
    if not path.is_relative_to(directory.resolve().parent):
        msg = f"file {name!r} lies outside the models directory"
        raise ValueError(msg)
    if sha256(path) != facts["sha256"]:
        msg = f"file {name!r} does not have the SHA-256 that {TOPIC_FILE} records"
        raise ValueError(msg)
    return path


def _share(name: str, value: float) -> float:
    if not 0 < value < 1:
        msg = f"{name} {value!r} must lie between 0 and 1"
        raise ValueError(msg)
    return value


def _toml(facts: Mapping[str, Any], table: str = "") -> list[str]:
    """Return the lines of a TOML table: its values first, then its tables."""
    values = [(key, value) for key, value in facts.items() if not isinstance(value, Mapping)]
    tables = [(key, value) for key, value in facts.items() if isinstance(value, Mapping)]
    # strings, numbers, booleans and lists are written alike in JSON and in TOML
    lines = [f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}" for key, value in values]
    for key, value in tables:
        name = f"{table}.{_key(key)}" if table else _key(key)
        lines += ["", f"[{name}]", *_toml(value, name)]
    return lines


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
