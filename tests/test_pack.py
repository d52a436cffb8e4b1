from __future__ import annotations

import json
import lzma
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tres_scrapy.topic import pack as pack_module
from tres_scrapy.topic.classifier import Network
from tres_scrapy.topic.pack import Pack, PackError, write_pack
from tres_scrapy.topic.text import Link, Page
from tres_scrapy.topic.vectors import WordVectors, sha256

SHIPPED = Path(__file__).parents[1] / "models"
DATA = Path(__file__).parents[2] / "shared" / "data"
FOOD_CATEGORIES = {"Everyday_life.Food_and_agriculture", "Everyday_life.Drink"}
OTHER_CATEGORIES = {"Countries", "Science.Biology.Birds", "Science.Chemistry.Chemical_elements"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A pack with random weights, written as training writes it."""
    models = tmp_path / "models"
    (models / "vectors").mkdir(parents=True)
    words = ["cheese", "wine", "disk", "cable"]
    matrix = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    WordVectors(words, matrix).save(models / "vectors" / "small.npz")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(5, hidden=4, dense=3)
    write_pack(models / "food", facts(models), network)
    return models / "food"


def facts(models: Path) -> dict[str, Any]:
    vectors = models / "vectors" / "small.npz"
    return {
        "name": "food",
        "threshold": 0.5,
        "keywords": {"given": ["cheese"], "phrases": ["slow food"], "expanded": ["wine"]},
        "classifier": {"kind": "bilstm", "hidden": 4, "dense": 3, "base_rate": 0.2},
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
    assert (pack.name, pack.threshold) == ("food", 0.5)
    assert pack.keywords.words == {"cheese", "wine"}
    assert pack.keywords.phrases == ("slow food",)


def test_the_facts_are_toml_whatever_their_names(tmp_path: Path) -> None:
    written = {"a": 'say "\u00e9\\"', "b": {"x y.z": {"c": [1, 2]}, "d": True, "e": 0.5}}
    network = Network(2, hidden=1, dense=1)
    write_pack(tmp_path, written | {"classifier": {"hidden": 1}}, network)
    read = tomllib.loads((tmp_path / "topic.toml").read_text(encoding="utf-8"))
    assert read["classifier"].pop("sha256") == sha256(tmp_path / "classifier.safetensors")
    assert read == written | {"classifier": {"hidden": 1}}


def test_a_page_is_relevant_from_the_threshold_on(directory: Path) -> None:
    pack = Pack.load(directory)
    (judgement,) = pack.judge([page()])
    for threshold, relevant in (
        (judgement.probability, True),
        (judgement.probability + 0.01, False),
    ):
        pack.threshold = threshold
        assert pack.judge([page()])[0].relevant is relevant


def test_title_and_text_are_judged_together(directory: Path) -> None:
    pack = Pack.load(directory)
    both, text_only = pack.judge(
        [page(), Page("https://example.org/", "", "wine cheese cable", ())]
    )
    assert both.probability == pytest.approx(text_only.probability)


def test_pages_are_judged_alike_alone_and_together(directory: Path) -> None:
    pages = [page("disk", "wine cheese"), page(text="disk disk"), page("", "disk")]
    together = Pack.load(directory).judge(pages)
    for one, judgement in zip(pages, together, strict=True):
        (alone,) = Pack.load(directory).judge([one])
        assert judgement.probability == pytest.approx(alone.probability, abs=1e-6)
        assert judgement.actions == pytest.approx(alone.actions, abs=1e-6)
        assert judgement.actions.shape == (len(one.links), 3)


def test_no_pages_have_no_judgements(directory: Path) -> None:
    assert Pack.load(directory).judge([]) == []


def test_action_features_are_keyword_in_url_in_anchor_and_probability(directory: Path) -> None:
    """P 2.4.1: features 4, 5 and 6."""
    pack = Pack.load(directory)
    urls = ["https://example.org/wine", "https://example.org/", "https://cheese.example.org/"]
    features = pack.action_features(urls, ["disk", "Slow food", ""])
    assert features.dtype == np.float32
    assert features[:, :2].tolist() == [[1, 0], [0, 1], [1, 0]]
    assert 0 < features[0, 2] < 1


def test_an_anchor_without_known_words_is_neutral(directory: Path) -> None:
    features = Pack.load(directory).action_features(["https://example.org/"] * 3, ["", "??", "qqq"])
    assert features[:, 2] == pytest.approx([0.2] * 3)


def test_no_links_have_no_features(directory: Path) -> None:
    assert Pack.load(directory).action_features([], []).shape == (0, 3)


def test_a_repeated_anchor_is_scored_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = Pack.load(directory)
    counts: list[int] = []
    score = pack.classifier.probabilities
    monkeypatch.setattr(
        pack.classifier, "probabilities", lambda texts: counts.append(len(texts)) or score(texts)
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
    (directory / "classifier.safetensors").unlink()


def alter_vectors(directory: Path) -> None:
    (directory.parent / "vectors" / "small.npz").write_bytes(b"other")


def pickle_weights(directory: Path) -> None:
    weights = directory / "classifier.safetensors"
    recorded = sha256(weights)
    torch.save({"dense": torch.zeros(1)}, weights)
    replace(directory / "topic.toml", recorded, sha256(weights))


def leave_models(directory: Path) -> None:
    replace(directory / "topic.toml", "../vectors/small.npz", "../../small.npz")
    (directory.parent / "vectors" / "small.npz").rename(directory.parents[1] / "small.npz")


def toml(old: str, new: str) -> Callable[[Path], None]:
    return lambda directory: replace(directory / "topic.toml", old, new)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (remove_weights, "classifier.safetensors"),
        (alter_vectors, "'../vectors/small.npz' does not have the SHA-256"),
        (pickle_weights, "header"),
        (leave_models, "outside the models directory"),
        (toml("[keywords]", "[keywords"), "line"),
        (toml("threshold = 0.5", ""), "has no 'threshold'"),
        (toml("threshold = 0.5", 'threshold = "high"'), "'str'"),
        (toml("threshold = 0.5", "threshold = 1.5"), "threshold 1.5"),
        (toml('kind = "bilstm"', 'kind = "svm"'), "kind 'svm' is unknown"),
        (toml("hidden = 4", "hidden = 8"), "size mismatch"),
        (toml("hidden = 4", "hidden = -4"), "hidden"),
        (toml('given = ["cheese"]', "given = [1]"), "'int'"),
        (toml('given = ["cheese"]', 'given = "cheese"'), "list"),
    ],
)
def test_a_damaged_pack_is_refused_in_one_line(
    directory: Path, damage: Callable[[Path], None], reason: str
) -> None:
    damage(directory)
    with pytest.raises(PackError, match=r"^topic pack 'food': ") as caught:
        Pack.load(directory)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_without_a_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"topic\.toml"):
        Pack.load(tmp_path / "missing")


def test_the_shipped_food_pack_tells_food_from_other_pages() -> None:
    pack = Pack.load(SHIPPED / "food")
    recipe = (
        "Melt butter, add chopped onions and garlic, season the soup and serve with bread. " * 5
    )
    match = "The striker scored twice before half time and the team won the cup final again. " * 5
    food, sport = pack.judge(
        [
            Page("https://example.org/a", "Onion soup", recipe, ()),
            Page("https://example.org/b", "Cup final", match, ()),
        ]
    )
    assert food.relevant
    assert not sport.relevant


def test_the_shipped_food_pack_ranks_anchors() -> None:
    pack = Pack.load(SHIPPED / "food")
    anchors = ["cheese recipes", "", "football results"]
    food, neutral, sport = pack.action_features(["https://example.org/"] * 3, anchors)[:, 2]
    assert food > 0.8 > neutral > sport
    assert neutral == pytest.approx(pack.classifier.base_rate)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the articles in shared/data")
def test_the_shipped_food_pack_finds_food_among_articles() -> None:
    """A guard against a broken pack: two thirds of these articles were trained on."""
    with lzma.open(DATA / "wiki.jsonl.xz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    food = [r for r in records if FOOD_CATEGORIES & set(r["categories"])]
    other = [r for r in records if OTHER_CATEGORIES & set(r["categories"])][:200]
    pages = [Page("https://example.org/", r["title"], r["text"], ()) for r in food + other]
    relevant = np.array([j.relevant for j in Pack.load(SHIPPED / "food").judge(pages)])
    assert relevant[: len(food)].mean() > 0.75
    assert relevant[len(food) :].mean() < 0.05
    assert relevant[[r["title"] for r in food].index("Cheese")]
