from __future__ import annotations

import json
import lzma
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import PROJECT, command

from tres_scrapy.page.text import Page
from tres_scrapy.topic import bilstm
from tres_scrapy.topic.classifier import LINEAR_KINDS, WordVectors
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack
from tres_scrapy.training import sample
from tres_scrapy.training.document import Document
from tres_scrapy.training.recipe import train_pack

pytestmark = pytest.mark.slow

FOOD = ["cheese", "wine", "butter", "bread", "soup", "milk", "onion", "garlic"]
OTHER = ["disk", "cable", "goal", "match", "engine", "poem", "river", "atom"]
KEYWORDS = KeywordSet(["cheese", "wine"], ["slow food"])


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short epochs: the documents here are easy."""
    monkeypatch.setattr(sample, "BATCHES", (3, 3))
    monkeypatch.setattr(sample, "RELEVANT_PER_BATCH", 8)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A directory of packs whose word vectors separate food words from the others."""
    (tmp_path / "models" / "vectors").mkdir(parents=True)
    matrix = np.random.default_rng(0).normal(0, 0.5, (len(FOOD + OTHER), 6)).astype(np.float32)
    matrix[: len(FOOD)] += 1
    WordVectors(FOOD + OTHER, matrix).save(tmp_path / "models" / "vectors" / "small.npz")
    return tmp_path / "models"


def documents(count: int = 90) -> list[Document]:
    rng = np.random.default_rng(1)
    made = []
    for n in range(count):
        words = FOOD if n % 3 == 0 else OTHER
        text = " ".join(rng.choice(words, 30))
        made.append(Document(words[n % 8], text, "web", f"host{n // 2}", n % 3 == 0))
    return made


def records(path: Path) -> Path:
    lines = [
        json.dumps({"title": d.title, "text": d.text, "host": d.host, "label": d.relevant})
        for d in documents()
    ]
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path


@pytest.mark.parametrize("kind", [*bilstm.KINDS, *LINEAR_KINDS])
@pytest.mark.long
def test_training_makes_a_pack(models: Path, kind: str) -> None:
    vectors = models / "vectors" / "small.npz"
    said: list[str] = []
    trained = train_pack(
        *(models / "food", KEYWORDS, documents(), vectors),
        kind=kind,
        beside=["tfidf"],
        epochs=8,
        say=said.append,
    )
    folds = [line.partition(",")[0] for line in said if "PR-AUC" in line]
    assert folds[-5:] == [f"{kind}: fold {number} of 5" for number in range(1, 6)]
    pack = Pack.load(models / "food")
    pages = [Page("https://a.org/", "", " ".join(words[2:]), (), "") for words in (FOOD, OTHER)]
    assert pack.classifier.kind == kind
    assert [judged.probability >= pack.threshold for judged in pack.judge(pages)] == [True, False]
    assert trained.facts["validation"][kind]["texts"]["mcc"] > 0.9
    assert list(trained.facts["validation"]) == list(dict.fromkeys([kind, "tfidf"]))
    assert trained.facts["training"]["documents"]["web"] == {"relevant": 30, "irrelevant": 60}
    assert {"cheese", "wine"} <= pack.keywords.words <= set(FOOD + OTHER)


def test_keywords_have_their_counts(models: Path) -> None:
    """Table 2: the mean number of keywords in relevant and in other documents."""
    vectors = models / "vectors" / "small.npz"
    found = train_pack(models / "food", KEYWORDS, documents(), vectors, kind="svm", beside=[])
    assert found.facts["keywords"]["per_relevant"] > 5
    assert found.facts["keywords"]["per_irrelevant"] == 0


@pytest.mark.long
def test_same_seed_same_pack(models: Path) -> None:
    """Bit for bit, whatever torch's own seed and number of threads."""
    vectors = models / "vectors" / "small.npz"
    written = []
    for run, seed in enumerate((1, 1, 2)):
        torch.manual_seed(run)
        train_pack(models / "food", KEYWORDS, documents(), vectors, seed=seed, date="d", epochs=2)
        written.append([path.read_bytes() for path in sorted((models / "food").iterdir())])
        shutil.rmtree(models / "food")
    assert written[0] == written[1]
    assert written[0][0] != written[2][0]


@pytest.mark.parametrize("relevant", [True, False])
def test_documents_of_both_labels_are_needed(models: Path, relevant: bool) -> None:
    one_sided = [d for d in documents() if d.relevant is relevant]
    with pytest.raises(ValueError, match=r"0 (ir)?relevant documents of 0 hosts are too few"):
        train_pack(models / "food", KEYWORDS, one_sided, models / "vectors" / "small.npz")


def test_a_few_hosts_are_too_few(models: Path) -> None:
    made = [replace(d, host="one") if d.relevant else d for d in documents()]
    with pytest.raises(ValueError, match=r"30 relevant documents of 1 hosts are too few"):
        train_pack(models / "food", KEYWORDS, made, models / "vectors" / "small.npz")
    assert not (models / "food").exists()


def test_outside_vectors_are_refused(models: Path, tmp_path: Path) -> None:
    outside = shutil.copy(models / "vectors" / "small.npz", tmp_path)
    with pytest.raises(ValueError, match=r"or a folder there"):
        train_pack(models / "food", KEYWORDS, documents(), Path(outside))


def test_command_writes_pack_and_report(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "keywords.txt").write_text("cheese\nwine\ndurian\n")
    pages = records(tmp_path / "pages.jsonl.xz")
    (models / "food").mkdir()
    (models / "food" / "topic.toml").write_text("an older one")
    arguments = ["food", "--keywords", tmp_path / "keywords.txt", "--models", models]
    arguments += ["--vectors", models / "vectors" / "small.npz", "--irrelevant", pages]
    page = {"url": "http://new.test/", "text": "cheese of a crawl"}  # kept by the live page
    (tmp_path / "a.fetched.jsonl").write_text(json.dumps(page) + "\n")
    (tmp_path / "a.txt").write_text("yes http://new.test/\n")
    arguments += ["--answers", tmp_path / "a.txt"]
    with pytest.raises(SystemExit, match="0"):
        command("train", *arguments, "--relevant", f"{pages}:label=True")
    printed = capsys.readouterr().out
    assert Pack.load(models / "food").name == "food"
    assert 'data-figure="' in (models / "food" / "report.html").read_text()
    for expected in (
        "91 documents read: 31 relevant",
        "1 keywords have no vector and add no others: durian",
        "will be replaced",
        "MCC",
        "tfidf",
        "report.html",
    ):
        assert expected in printed
    assert "have no host" not in printed


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["goat cheese"], "topic 'goat cheese' must be letters"),
        (["vectors"], "topic 'vectors' must be"),
        (["food", "--language", "EN"], "--language 'EN' must be two lower-case letters"),
        (["a", "--classifier", "words", "--language", "de"], "only English, not --language de"),
        (["a", "--classifier", "words", "--beside", "svm"], "leave out --vectors and --beside"),
        (["a", "--classifier", "words", "--vectors", "x"], "leave out --vectors and --beside"),
    ],
)
def test_impossible_pack_is_refused_early(arguments: list[str], rule: str) -> None:
    files = ["--keywords", "x", "--irrelevant", "x", "--relevant", "x"]  # they are not read
    with pytest.raises(SystemExit, match=rule):
        command("train", *arguments, *files)


def test_missing_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "keywords.txt").write_text("cheese\n")
    arguments = ["--keywords", tmp_path / "keywords.txt", "--irrelevant", "x", "--relevant", "x"]
    with pytest.raises(SystemExit, match="documents 'x' must be a file"):
        command("train", "food", *arguments)
    vectors = PROJECT / "models" / "vectors" / "english.npz"
    with pytest.raises(SystemExit, match=r"must lie in .* or a folder there"):
        command("train", "food", *arguments, "--output", tmp_path, "--vectors", vectors)
    assert not (tmp_path / "vectors").exists()
