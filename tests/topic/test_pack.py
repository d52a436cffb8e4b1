from __future__ import annotations

import contextlib
import json
import lzma
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import DATA, PROJECT
from numpy.typing import NDArray
from safetensors.torch import load, save_file

from tres_scrapy.links.model import LinkPrior
from tres_scrapy.page.text import Link, Page
from tres_scrapy.topic import pack as pack_module
from tres_scrapy.topic import pack_file
from tres_scrapy.topic.bilstm import BiLstm, Network
from tres_scrapy.topic.classifier import BLANK_LOGIT, BagOfWords, Text, WordVectors
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import sha256

SHIPPED = PROJECT / "models"
FOOD_CATEGORIES = {"Everyday_life.Food_and_agriculture", "Everyday_life.Drink"}
OTHER_CATEGORIES = {"Countries", "Science.Biology.Birds", "Science.Chemistry.Chemical_elements"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A pack with random weights, written as training writes it."""
    models = tmp_path / "models"
    (models / "vectors").mkdir(parents=True)
    words = ["cheese", "wine", "disk", "cable"]
    matrix = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    vectors = WordVectors(words, matrix)
    vectors.save(models / "vectors" / "small.npz")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        classifier = BiLstm(Network(5, hidden=4, dense=3), vectors)
    write_pack(models / "food", facts(models) | model(classifier), classifier)
    return models / "food"


def model(classifier: BiLstm | BagOfWords) -> dict[str, Any]:
    scaling = {"slope": 2.0, "intercept": -0.5}
    return {"classifier": {"kind": classifier.kind} | scaling | classifier.sizes()}


def facts(models: Path) -> dict[str, Any]:
    vectors = models / "vectors" / "small.npz"
    return {
        "name": "food",
        "language": "en",
        "threshold": 0.5,
        "keywords": {"given": ["cheese"], "phrases": ["slow food"], "expanded": ["wine"]},
        "vectors": {"file": "../vectors/small.npz", "sha256": sha256(vectors)},
    }


def page(*anchors: str, text: str = "cheese cable") -> Page:
    links = tuple(Link(f"https://example.org/{n}", anchor) for n, anchor in enumerate(anchors))
    return Page("https://example.org/", "wine", text, links)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_written_pack_is_loaded(directory: Path) -> None:
    pack = Pack.load(directory)
    assert (pack.name, pack.threshold, pack.language) == ("food", 0.5, "en")
    assert pack.keywords.words == {"cheese", "wine"}
    assert pack.keywords.phrases == ("slow food",)


def test_pack_may_name_a_judge(directory: Path) -> None:
    path = directory / "topic.toml"
    facts = path.read_text(encoding="utf-8")
    path.write_text(f'judge = "mine.rule:judge"\n{facts}', encoding="utf-8")
    assert Pack.load(directory).judged_by == "mine.rule:judge"
    path.write_text(f'judge = "\\u001b[31m:judge"\n{facts}', encoding="utf-8")
    with pytest.raises(TresError, match=r"must be package\.module:callable"):
        Pack.load(directory)


@pytest.mark.parametrize("name", ["food", "food-svm"])
def test_lazy_pack_scores_seeds(name: str) -> None:
    """The crawler's process has no PyTorch: it takes a second and 200 MB."""
    urls = ["https://cheese.example.org/", "https://example.org/"]
    lazy, whole = (Pack.load(SHIPPED / name, lazily=lazily) for lazily in (True, False))
    features = lazy.action_features(urls, ["", ""])
    assert "classifier" not in vars(lazy)
    assert features.tolist() == whole.action_features(urls, ["", ""]).tolist()
    anchors = ["cheese soup", "engine"]
    assert (lazy.action_features(urls, anchors) == whole.action_features(urls, anchors)).all()


def test_facts_are_valid_toml(tmp_path: Path) -> None:
    written = {
        "a": 'say "\u00e9\\"\x7f\n',
        "\x7f": ["\x7f"],
        "b": {"x y.z": {"c": [1, 2]}, "d": True, "e": 0.5},
    }
    classifier = BagOfWords("svm", ["a"], np.ones((2, 1), dtype=np.float32), 0.0)
    write_pack(tmp_path, written | {"classifier": {"hidden": 1}}, classifier)
    read = tomllib.loads((tmp_path / "topic.toml").read_text(encoding="utf-8"))
    file, digest = (read["classifier"].pop(name) for name in ("file", "sha256"))
    assert digest == sha256(tmp_path / file)
    assert read == written | {"classifier": {"hidden": 1}}


def test_odd_name_is_written(tmp_path: Path) -> None:
    classifier = BagOfWords("svm", ["a"], np.ones((2, 1), dtype=np.float32), 0.0)
    write_pack(tmp_path, {"classifier": {}, "caf\udce9": 1}, classifier)
    assert tomllib.loads((tmp_path / "topic.toml").read_text(encoding="utf-8"))["caf?"] == 1


@pytest.mark.parametrize("wrong", [None, {1}])
def test_failed_save_keeps_old_pack(directory: Path, wrong: object) -> None:
    before = {path: path.read_bytes() for path in directory.iterdir()}
    linear = BagOfWords("tfidf", ["wine"], np.ones((2, 1), dtype=np.float32), -1.0)
    with pytest.raises(TypeError):
        write_pack(directory, facts(directory.parent) | model(linear) | {"wrong": wrong}, linear)
    assert {path: path.read_bytes() for path in directory.iterdir()} == before


def test_pack_does_not_follow_links(directory: Path) -> None:
    victim = directory.parents[1] / "victim"
    victim.write_text("mine")
    for name in ("topic.toml", "topic.toml.part"):
        (directory / name).unlink(missing_ok=True)
        (directory / name).symlink_to(victim)
    linear = BagOfWords("tfidf", ["wine"], np.ones((2, 1), dtype=np.float32), -1.0)
    write_pack(directory, facts(directory.parent) | model(linear), linear)
    assert victim.read_text() == "mine"
    assert Pack.load(directory).classifier.kind == "tfidf"


class Killed(BaseException):
    pass


@pytest.mark.parametrize("steps", range(8))
def test_killed_save_leaves_whole_pack(
    directory: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    linear = BagOfWords("tfidf", ["wine"], np.ones((2, 1), dtype=np.float32), -1.0)
    left = iter(range(steps))

    def until_killed(change: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: object, **options: object) -> Any:
            if next(left, None) is None:
                raise Killed
            return change(*arguments, **options)

        return run

    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        for name in ("replace", "unlink"):
            patched.setattr(Path, name, until_killed(getattr(Path, name)))
        write_pack(directory, facts(directory.parent) | model(linear), linear)
    assert Pack.load(directory).classifier.kind == ("bilstm" if steps < 5 else "tfidf")
    write_pack(directory, facts(directory.parent) | model(linear), linear)
    assert len(list(directory.glob("*.safetensors"))) == 1


def test_the_weights_may_have_any_name(directory: Path) -> None:
    (weights,) = directory.glob("*.safetensors")
    weights.rename(directory / "classifier.safetensors")
    replace(directory / "topic.toml", weights.name, "classifier.safetensors")
    assert Pack.load(directory).classifier.kind == "bilstm"


def test_probabilities_are_calibrated_logits(directory: Path) -> None:
    pack = Pack.load(directory)
    texts = [Text(["cheese", "disk"]), Text([])]
    expected = 1 / (1 + np.exp(0.5 - 2 * pack.classifier.logits(texts)))
    assert pack.probabilities(texts) == pytest.approx(expected)


def test_linear_model_is_a_pack(directory: Path) -> None:
    linear = BagOfWords("tfidf", ["wine", "disk"], np.eye(2, dtype=np.float32) + 1, -1.0)
    write_pack(directory, facts(directory.parent) | model(linear), linear)
    pack = Pack.load(directory)
    assert pack.classifier.kind == "tfidf"
    assert pack.classifier.logits([Text(["wine"])]).tolist() == [0.0]


def test_title_and_text_are_judged_together(directory: Path) -> None:
    pack = Pack.load(directory)
    both, text_only = pack.judge(
        [page(), Page("https://example.org/", "", "wine cheese cable", ())]
    )
    assert both.probability == pytest.approx(text_only.probability)


def test_batch_does_not_change_verdict(directory: Path) -> None:
    pages = [page("disk", "wine cheese"), page(text="disk disk"), page("", "disk")]
    together = Pack.load(directory).judge(pages)
    for one, judgement in zip(pages, together, strict=True):
        (alone,) = Pack.load(directory).judge([one])
        assert judgement.probability == pytest.approx(alone.probability, abs=1e-6)
        assert judgement.actions == pytest.approx(alone.actions, abs=1e-6)
        assert judgement.actions.shape == (len(one.links), 3)


def test_no_pages_have_no_judgements(directory: Path) -> None:
    assert Pack.load(directory).judge([]) == []


def test_action_features_are_three(directory: Path) -> None:
    """P 2.4.1: features 4, 5 and 6."""
    pack = Pack.load(directory)
    urls = ["https://example.org/wine", "https://example.org/", "https://cheese.example.org/"]
    features = pack.action_features(urls, ["disk", "Slow food", ""])
    assert features.dtype == np.float32
    assert features[:, :2].tolist() == [[1, 0], [0, 1], [1, 0]]
    assert 0 < features[0, 2] < 1


def test_unknown_anchor_is_neutral(directory: Path) -> None:
    features = Pack.load(directory).action_features(["https://example.org/"] * 3, ["", "??", "qqq"])
    assert features[:, 2] == pytest.approx([1 / (1 + np.exp(0.5 - 2 * BLANK_LOGIT))] * 3)


def test_no_links_have_no_features(directory: Path) -> None:
    assert Pack.load(directory).action_features([], []).shape == (0, 3)


def test_a_repeated_anchor_is_scored_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = Pack.load(directory)
    counts: list[int] = []
    score = pack.classifier.logits
    monkeypatch.setattr(
        pack.classifier, "logits", lambda texts: counts.append(len(texts)) or score(texts)
    )
    pack.judge([page("disk", "wine", "disk"), page("wine")])
    pack.judge([page("disk")])
    assert counts == [4, 1]


def test_the_anchors_kept_are_bounded(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_module, "MAX_ANCHORS_KEPT", 2)
    pack = Pack.load(directory)
    for anchor in ("disk", "wine", "cable", "cheese"):
        features = pack.action_features(["https://example.org/"], [anchor])
    assert list(pack._anchors) == ["cable", "cheese"]
    assert features.shape == (1, 3)


def remove_weights(directory: Path) -> None:
    next(directory.glob("*.safetensors")).unlink()


def alter_vectors(directory: Path) -> None:
    (directory.parent / "vectors" / "small.npz").write_bytes(b"other")


def pickle_weights(directory: Path) -> None:
    weights = next(directory.glob("*.safetensors"))
    recorded = sha256(weights)
    torch.save({"dense": torch.zeros(1)}, weights)
    replace(directory / "topic.toml", recorded, sha256(weights))


def weights(**changes: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        path = next(directory.glob("*.safetensors"))
        recorded, tensors = sha256(path), load(path.read_bytes())
        for each, change in changes.items():
            name = each.replace("_", ".")
            tensors[name] = change(tensors.get(name, torch.zeros(1)))
        save_file(tensors, path)
        replace(directory / "topic.toml", recorded, sha256(path))

    return damage


def break_vectors(directory: Path) -> None:
    path = directory.parent / "vectors" / "small.npz"
    recorded = sha256(path)
    path.write_bytes(path.read_bytes()[:-40])
    replace(directory / "topic.toml", recorded, sha256(path))


def leave_the_pack(directory: Path) -> None:
    path = next(directory.glob("*.safetensors"))
    replace(directory / "topic.toml", path.name, f"../{path.name}")
    path.rename(directory.parent / path.name)


def link_the_facts(directory: Path) -> None:
    (directory / "topic.toml").rename(directory.parent / "topic.toml")
    (directory / "topic.toml").symlink_to("../topic.toml")


def pipe_the_facts(directory: Path) -> None:
    (directory / "topic.toml").unlink()
    os.mkfifo(directory / "topic.toml")


def pipe_the_weights(directory: Path) -> None:
    path = next(directory.glob("*.safetensors"))
    path.unlink()
    os.mkfifo(path)


def stretch(name: str) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        os.truncate(next(directory.glob(name)), 2**40)

    return damage


def name_the_weights(name: str) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        replace(directory / "topic.toml", next(directory.glob("*.safetensors")).name, name)

    return damage


def leave_models(directory: Path) -> None:
    replace(directory / "topic.toml", "../vectors/small.npz", "../../small.npz")
    (directory.parent / "vectors" / "small.npz").rename(directory.parents[1] / "small.npz")


def toml(old: str, new: str) -> Callable[[Path], None]:
    return lambda directory: replace(directory / "topic.toml", old, new)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (remove_weights, "no such file"),
        (alter_vectors, "'../vectors/small.npz' does not have the SHA-256"),
        (pickle_weights, "header"),
        (leave_models, "outside the directory 'models'"),
        (leave_the_pack, "outside the directory 'food'"),
        (name_the_weights("/etc/passwd"), "outside the directory 'food'"),
        (name_the_weights("/dev/zero"), "outside the directory 'food'"),
        (name_the_weights("."), "'.' must be an ordinary file"),
        (name_the_weights(r"a\u0000"), "null"),
        (link_the_facts, "outside the directory 'food'"),
        (pipe_the_facts, "'topic.toml' must be an ordinary file"),
        (pipe_the_weights, "must be an ordinary file"),
        (stretch("topic.toml"), "'topic.toml' must be an ordinary file of 4,194,304 bytes"),
        (stretch("*.safetensors"), "must be an ordinary file of 1,073,741,824 bytes"),
        (stretch("../vectors/small.npz"), "must be an ordinary file of 1,073,741,824 bytes"),
        (toml('language = "en"', 'language = "\\u001b[2J"'), "two small letters"),
        (toml("threshold = 0.5", "threshold = nan"), "threshold nan"),
        (break_vectors, "'small.npz' is not a word vector file"),
        (weights(dense_bias=lambda b: b * torch.nan), "dense.bias nan"),
        (weights(dense_bias=lambda b: b + 3e38), "dense.bias 3"),
        (weights(dense_bias=torch.Tensor.double), "dense.bias is float64"),
        (weights(dense_bias=lambda b: b[:2].clone()), "size mismatch"),
        (weights(**{"\x1b[2J\n" + "x" * 999: torch.Tensor.clone}), "Unexpected key"),
        (toml("[keywords]", "[keywords"), "line"),
        (toml("threshold = 0.5", ""), "has no 'threshold'"),
        (toml("threshold = 0.5", 'threshold = "high"'), "'str'"),
        (toml("threshold = 0.5", f"threshold = {'9' * 400}"), "threshold 99"),
        (toml("[keywords]", "x = " + "[" * 9_999 + "\n[keywords]"), "recursion"),
        (toml("[keywords]", "[[keywords]]"), "list indices"),
        (toml("threshold = 0.5", "threshold = 1.5"), "threshold 1.5"),
        (toml('kind = "bilstm"', 'kind = "bert"'), "kind 'bert' is unknown"),
        (toml('kind = "bilstm"', 'kind = "svm"'), "has no 'words'"),
        (toml("slope = 2.0", "slope = nan"), "slope nan"),
        (toml("slope = 2.0", "slope = 1e300"), "slope 1e+300"),
        (toml("slope = 2.0", f"slope = {'9' * 400}"), "slope 99"),
        (toml("slope = 2.0", 'slope = "2.0"'), "slope '2.0'"),
        (toml("hidden = 4", "hidden = 8"), "size mismatch"),
        (toml("hidden = 4", "hidden = -4"), "hidden -4 must be a whole number"),
        (toml("hidden = 4", "hidden = true"), "hidden True must be a whole number"),
        (toml("hidden = 4", "hidden = 12000"), "hidden 12000 must be a whole number"),
        (
            toml('given = [\n    "cheese",\n]', "given = [1]"),
            "given [1] must be a list of strings",
        ),
        (toml('given = [\n    "cheese",\n]', 'given = "cheese"'), "given 'cheese' must be a list"),
        (
            toml('expanded = [\n    "wine",\n]', 'expanded = "wine"'),
            "expanded 'wine' must be a list",
        ),
        (
            toml('phrases = [\n    "slow food",\n]', 'phrases = "slow"'),
            "phrases 'slow' must be a list",
        ),
    ],
)
def test_damaged_pack_is_one_line(
    directory: Path, damage: Callable[[Path], None], reason: str
) -> None:
    damage(directory)
    with pytest.raises(TresError, match=r"^topic pack 'food': ") as caught:
        Pack.load(directory)
    assert reason in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["classifier", "bias", "words"])
def test_a_damaged_linear_pack_is_refused(directory: Path, name: str) -> None:
    linear = BagOfWords("tfidf", ["wine", "disk"], np.ones((2, 2), dtype=np.float32), -1.0)
    write_pack(directory, facts(directory.parent) | model(linear), linear)
    text = (directory / "topic.toml").read_text()
    damaged = re.sub(rf"^(\[?){name}\b", r"\1other", text, flags=re.MULTILINE)
    (directory / "topic.toml").write_text(damaged)
    with pytest.raises(TresError, match=f"no '{name}'"):
        Pack.load(directory)


def test_bad_weights_take_no_memory(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices: set[str] = set()
    monkeypatch.setattr(
        Network,
        "load_state_dict",
        lambda self, *_, **__: devices.update(t.device.type for t in self.state_dict().values()),
    )
    Pack.load(directory)
    assert devices == {"meta"}


def test_interrupted_pack_is_no_damage(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: Path) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(pack_file, "sha256", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Pack.load(directory)


def test_missing_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TresError, match=r"topic\.toml"):
        Pack.load(tmp_path / "missing")


TEXTS = {
    "food": "Melt butter, add chopped onions and garlic, season the soup and serve with bread. ",
    "sports": "The striker scored twice before half time and the team won the cup final again. ",
    "hardware": "The new hard disk needs a faster controller card, a long cable and a jumper. ",
}


@pytest.mark.parametrize("topic", TEXTS)
@pytest.mark.parametrize("times", [1, 5])
def test_shipped_pack_knows_its_topic(topic: str, times: int) -> None:
    pages = [Page("https://example.org/", "", text * times, ()) for text in TEXTS.values()]
    pack = Pack.load(SHIPPED / topic)
    relevant = [judgement.probability >= pack.threshold for judgement in pack.judge(pages)]
    assert relevant == [name == topic for name in TEXTS]


def test_the_shipped_food_pack_ranks_anchors() -> None:
    pack = Pack.load(SHIPPED / "food")
    anchors = ["cheese recipes", "", "football results"]
    food, neutral, sport = pack.action_features(["https://example.org/"] * 3, anchors)[:, 2]
    assert food > 0.5 > neutral > sport


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the articles in shared/data")
def test_food_pack_finds_food() -> None:
    """A guard against a broken pack: two thirds of these articles were trained on."""
    with lzma.open(DATA / "wiki.jsonl.xz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    food = [r for r in records if FOOD_CATEGORIES & set(r["categories"])]
    other = [r for r in records if OTHER_CATEGORIES & set(r["categories"])][:200]
    pages = [Page("https://example.org/", r["title"], r["text"], ()) for r in food + other]
    pack = Pack.load(SHIPPED / "food")
    relevant = np.array([j.probability >= pack.threshold for j in pack.judge(pages)])
    assert relevant[: len(food)].mean() > 0.75
    assert relevant[len(food) :].mean() < 0.05
    assert relevant[[r["title"] for r in food].index("Cheese")]


@pytest.fixture
def known_links(directory: Path) -> Path:
    """A pack that knows two weights of what links say."""
    linear = BagOfWords("tfidf", ["wine"], np.ones((2, 1), dtype=np.float32), -1.0)
    prior = LinkPrior(np.array([1, 7], dtype=np.uint32), np.array([0.5, -2], dtype=np.float32))
    write_pack(directory, facts(directory.parent) | model(linear), linear, prior)
    return directory


def test_pack_knows_links(known_links: Path) -> None:
    codes, weights = Pack.load(known_links, lazily=True).link_prior
    assert (codes.tolist(), weights.tolist()) == ([1, 7], [0.5, -2.0])
    linear = BagOfWords("tfidf", ["wine"], np.ones((2, 1), dtype=np.float32), -1.0)
    write_pack(known_links, facts(known_links.parent) | model(linear), linear)
    assert not list(known_links.glob("links*"))


@pytest.mark.parametrize(
    ("codes", "weights"),
    [
        (np.array([2**31], np.uint32), np.ones(1, np.float32)),
        (np.array([1], np.int64), np.ones(1, np.float32)),
        (np.array([1, 2], np.uint32), np.ones(1, np.float32)),
        (np.array([[1]], np.uint32), np.ones((1, 1), np.float32)),
        (np.array([1], np.uint32), np.full(1, np.nan, np.float32)),
        (np.array([1], np.uint32), np.full(1, 31, np.float32)),
        (np.array([1], np.uint32), np.ones(1, np.float64)),
    ],
)
def test_impossible_weights_of_links_are_refused(
    directory: Path, codes: NDArray[Any], weights: NDArray[Any]
) -> None:
    linear = BagOfWords("tfidf", ["wine"], np.ones((2, 1), dtype=np.float32), -1.0)
    prior = LinkPrior(codes, weights)
    write_pack(directory, facts(directory.parent) | model(linear), linear, prior)
    with pytest.raises(TresError, match="links-"):
        Pack.load(directory)
