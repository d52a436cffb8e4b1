"""The fuzzing target that loads packs with a damaged file but correct hashes."""

from __future__ import annotations

import json
import re
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import torch

from fuzzing.mutation import NUMBERS, REALS, changed, changed_bytes, json_text, scalar
from fuzzing.target import check_line
from fuzzing.text import ARTICLE, BASE
from tres_scrapy.page.text import read_page
from tres_scrapy.topic.bilstm import BiLstm, Network
from tres_scrapy.topic.classifier import BagOfWords, WordVectors
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.url.message import TresError

WEIGHTS: Final = "classifier-0.safetensors"
VECTORS: Final = "../vectors/small.npz"
TOML_PARTS: Final = ["[", "]", "=", '"', "nan", "inf", "[[a]]", "9" * 400, "a.b = 1\n", "\0", "#"]
TOML_VALUE: Final = re.compile(r"(?<= = ).+")
PAGE: Final = read_page(ARTICLE, BASE)


class DamagedPack:
    """A pack with correct hashes but a damaged file; only TresError may be raised."""

    name = "Pack.load"
    share = 0.05

    def __init__(self, directory: Path) -> None:
        words = ["cheese", "wine", "disk", "cable"]
        matrix = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
        vectors = WordVectors(words, matrix)
        (directory / "vectors").mkdir(parents=True)
        vectors.save(directory / "vectors" / "small.npz")
        torch.manual_seed(0)
        classifiers: list[Any] = [
            BiLstm(Network(5, hidden=4, dense=3), vectors),
            BagOfWords("tfidf", words[1:3], np.ones((2, 2), dtype=np.float32), -1.0),
        ]
        self._packs = []
        for classifier in classifiers:
            pack = directory / classifier.kind
            pack.mkdir()
            write_pack(pack, _facts(pack, classifier), classifier)
            self._packs.append(_Files(pack))

    def draw(self, random: Random) -> str:
        number = random.randrange(len(self._packs))
        name, data = random.choice(list(self._packs[number].contents.items()))
        return f"{number} {name}\n{self._changed(random, name, data).decode('latin-1')}"

    def check(self, text: str) -> None:
        first, _, content = text.partition("\n")
        number, _, name = first.partition(" ")
        if number not in {"0", "1"} or name not in self._packs[int(number)].contents:
            return
        files = self._packs[int(number)]
        files.write(name, content.encode("latin-1"))
        try:
            self._judge(Pack.load(files.directory))
        except TresError as error:
            check_line(error)
            if isinstance(error.__cause__, MemoryError):
                raise error.__cause__ from None
        finally:
            files.restore()

    @staticmethod
    def _judge(pack: Pack) -> None:
        (judgement,) = pack.judge([PAGE])
        assert 0 <= judgement.probability <= 1, judgement
        assert np.isfinite(judgement.actions).all()

    @staticmethod
    def _changed(random: Random, name: str, data: bytes) -> bytes:
        if random.random() < 0.2:
            return changed_bytes(random, data)
        if name == TOPIC_FILE:
            return _changed_toml(random, data.decode()).encode("utf-8", "replace")
        return _changed_weights(random, data) if name == WEIGHTS else _changed_zip(random, data)


class _Files:
    """The files of a pack, each of which can be replaced so that its hash is the recorded one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (weights,) = directory.glob("*.safetensors")
        facts = (directory / TOPIC_FILE).read_text().replace(weights.name, WEIGHTS)
        weights.rename(directory / WEIGHTS)
        (directory / TOPIC_FILE).write_text(facts)
        names = (TOPIC_FILE, WEIGHTS, VECTORS)
        self.contents = {name: (directory / name).read_bytes() for name in names}

    def write(self, name: str, content: bytes) -> None:
        """Replace one file."""
        facts, old = self.contents[TOPIC_FILE], self.contents[name]
        recorded, digest = (sha256(data).hexdigest().encode() for data in (old, content))
        (self.directory / TOPIC_FILE).write_bytes(facts.replace(recorded, digest))
        (self.directory / name).write_bytes(content)

    def restore(self) -> None:
        """Restore the good files."""
        for name, content in self.contents.items():
            (self.directory / name).write_bytes(content)


def _facts(directory: Path, classifier: Any) -> dict[str, Any]:
    vectors = (directory / VECTORS).read_bytes()
    scaling = {"slope": 2.0, "intercept": -0.5}
    return {
        "name": directory.name,
        "language": "en",
        "threshold": 0.5,
        "keywords": {"given": ["cheese"], "phrases": ["slow food"], "expanded": ["wine"]},
        "vectors": {"file": VECTORS, "sha256": sha256(vectors).hexdigest()},
        "classifier": {"kind": classifier.kind} | scaling | classifier.sizes(),
    }


def _changed_toml(random: Random, text: str) -> str:
    if random.random() < 0.3:
        return changed(random, text, TOML_PARTS)
    values = list(TOML_VALUE.finditer(text))
    old = random.choice(values)
    kinds = [*map(str, REALS), *map(str, NUMBERS), *TOML_PARTS, random.choice(values)[0]]
    kinds += [json.dumps(scalar(random)), json_text(random, ["cheese", "wine"])]
    return text[: old.start()] + random.choice(kinds) + text[old.end() :]


def _changed_weights(random: Random, data: bytes) -> bytes:
    """Change the header of a safetensors file, or its numbers."""
    size = int.from_bytes(data[:8], "little")
    header, numbers = data[8 : 8 + size], data[8 + size :]
    if random.random() < 0.6:
        header = json_text(random, json.loads(header)).encode("utf-8", "surrogatepass")
    else:
        numbers = changed_bytes(random, numbers)
    size = random.choice([len(header)] * 9 + [random.choice(NUMBERS) & 2**64 - 1])
    return size.to_bytes(8, "little") + header + numbers


def _changed_zip(random: Random, data: bytes) -> bytes:
    """Change an array in an .npz file and correct the checksums."""
    with zipfile.ZipFile(BytesIO(data)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = random.choice(list(members))
    old = members[name]
    text = changed(random, old[:80].decode("latin-1"), ["(", "9" * 20, "1,", "O", "V", "<f8", "-1"])
    members[name] = random.choice([changed_bytes(random, old), text.encode("latin-1") + old[80:]])
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for each, content in members.items():
            file.writestr(each, content)
    return stream.getvalue()
