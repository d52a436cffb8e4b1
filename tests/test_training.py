from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scrapy.cmdline import execute
from scrapy.settings import Settings

from tres_scrapy.topic import fitting
from tres_scrapy.topic.document import Document, Selection, Sentences, read_documents
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.sample import IRRELEVANT_PER_RELEVANT, Sampler, split_hosts
from tres_scrapy.topic.score import score
from tres_scrapy.topic.text import Page
from tres_scrapy.topic.training import train_pack
from tres_scrapy.topic.vectors import WordVectors

FOOD = ["cheese", "wine", "butter", "bread", "soup", "milk", "onion", "garlic"]
OTHER = ["disk", "cable", "goal", "match", "engine", "poem", "river", "atom"]
KEYWORDS = KeywordSet(["cheese", "wine"], ["slow food"])


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A directory of packs with word vectors in which food lies apart from the rest."""
    (tmp_path / "models" / "vectors").mkdir(parents=True)
    matrix = np.random.default_rng(0).normal(0, 0.5, (len(FOOD + OTHER), 6)).astype(np.float32)
    matrix[: len(FOOD)] += 1
    WordVectors(FOOD + OTHER, matrix).save(tmp_path / "models" / "vectors" / "small.npz")
    return tmp_path / "models"


@pytest.fixture
def vectors(models: Path) -> WordVectors:
    return WordVectors.load(models / "vectors" / "small.npz")


def documents(count: int = 60) -> list[Document]:
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


def write(path: Path, *lines: dict[str, Any]) -> Selection:
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return Selection(path)


def test_a_selection_is_a_file_or_some_lines_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a:b.jsonl"
    path.touch()
    assert Selection.parse(str(path)) == Selection(path)
    assert Selection.parse(f"{path}:label=x,y") == Selection(path, "label", frozenset("xy"))
    for text in (f"{path}:label", "missing.jsonl", "missing.jsonl:label=x"):
        with pytest.raises(ValueError, match=r"FILE:FIELD=VALUE"):
            Selection.parse(text)


def test_a_selection_compares_a_value_or_each_of_a_list() -> None:
    selection = Selection(Path("x"), "label", frozenset(["food", "1"]))
    records = [{"label": "food"}, {"label": ["sport", "food"]}, {"label": 1}, {"label": "x"}, {}]
    assert [record in selection for record in records] == [True, True, True, False, False]


def test_a_line_selected_by_both_sides_is_relevant_and_read_once(tmp_path: Path) -> None:
    every = write(tmp_path / "a.jsonl", {"text": "a", "n": 1}, {"text": "b", "n": 2})
    some = Selection(every.path, "n", frozenset("2"))
    assert [(d.text, d.relevant) for d in read_documents([some], [every])] == [
        ("a", False),
        ("b", True),
    ]


def test_html_is_read_as_a_page_of_its_host(tmp_path: Path) -> None:
    html = "<title>T</title><p>cheese</p>"
    selection = write(tmp_path / "a.b.jsonl", {"html": html, "url": "https://www.shop.org/x"})
    (document,) = read_documents([selection], [])
    assert document == Document("T", "cheese", "a", "shop.org", True)


def test_records_without_a_host_stand_for_themselves(tmp_path: Path) -> None:
    selection = write(tmp_path / "a.jsonl", {"text": "a"}, {"text": "b", "url": None})
    assert len({document.host for document in read_documents([selection], [])}) == 2


@pytest.mark.parametrize("line", ['{"title": "t"}', "[]", "{"])
def test_a_line_that_is_no_document_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"text": "x"}}\n{line}')
    with pytest.raises(ValueError, match=r"'a.jsonl', line 2"):
        list(read_documents([Selection(tmp_path / "a.jsonl")], []))


def test_sentences_can_be_read_again(tmp_path: Path) -> None:
    selection = write(tmp_path / "a.jsonl", {"text": "Milk " * 1_001}, {"text": "Wine"})
    sentences = Sentences([selection.path])
    assert [len(sentence) for sentence in sentences] == [1_000, 1, 1]
    assert list(sentences)[-1] == ["wine"]


def test_hosts_are_on_one_side_of_the_split(vectors: WordVectors) -> None:
    made = [Document(d.host, d.text, d.source, d.host, d.relevant) for d in documents()]
    texts = {" ".join(d.text.split()): d.host for d in made}
    split = split_hosts(made, vectors, np.random.default_rng(0))
    sides = [
        {texts[" ".join(vectors.words[row] for row in example.text)] for example in side}
        for side in (split.training, split.validation, split.test)
    ]
    assert sum(map(len, sides)) == len({d.host for d in made})
    assert [len(side) for side in sides] == [21, 3, 6]


def test_a_batch_holds_the_same_share_of_relevant_documents(vectors: WordVectors) -> None:
    split = split_hosts(documents(), vectors, np.random.default_rng(0))
    sampler = Sampler(split.training, np.random.default_rng(0))
    relevant = sum(example.relevant for example in split.training)
    labels = [labels for _, labels in sampler.epoch()]
    assert sum(int(batch.sum()) for batch in labels) == 3 * relevant
    assert [len(batch) / batch.sum() for batch in labels] == [1 + IRRELEVANT_PER_RELEVANT] * len(
        labels
    )


def test_every_source_of_irrelevant_documents_is_drawn_as_often(vectors: WordVectors) -> None:
    many = [Document("", "disk", "many", str(n), False) for n in range(300)]
    few = [Document("", "goal", "few", str(n), False) for n in range(30)]
    food = [Document("", "cheese", "few", f"f{n}", True) for n in range(300)]
    split = split_hosts([*many, *few, *food], vectors, np.random.default_rng(0))
    sampler = Sampler(split.training, np.random.default_rng(0))
    drawn = [int(text[0]) for texts, _ in sampler.epoch() for text in texts]
    disk, goal = (vectors.words.index(word) for word in ("disk", "goal"))
    assert drawn.count(disk) / drawn.count(goal) == pytest.approx(1, abs=0.2)


def test_scores_of_a_known_table_and_mcc_as_a_correlation() -> None:
    true = np.repeat([True, True, False, False], [6, 2, 4, 8])  # 6 found, 2 missed, 4 false
    predicted = np.repeat([True, False, True, False], [6, 2, 4, 8])
    found = score(true, predicted)
    assert found[:3] == pytest.approx((6 / 10, 6 / 8, (12 / 18 + 16 / 22) / 2))
    assert found.mcc == pytest.approx(np.corrcoef(true, predicted)[0, 1])


def test_scores_of_a_silent_model_are_zero_not_an_error() -> None:
    silent = score(np.array([True, False]), np.zeros(2, dtype=bool))
    assert (silent.precision, silent.recall, silent.mcc) == (0, 0, 0)


def test_training_makes_a_pack_that_tells_the_topic(models: Path) -> None:
    facts = train_pack(
        models / "food", KEYWORDS, documents(240), models / "vectors" / "small.npz", epochs=8
    )
    pack = Pack.load(models / "food")
    pages = [Page("https://a.org/", "", " ".join(words[2:]), ()) for words in (FOOD, OTHER)]
    assert [judgement.relevant for judgement in pack.judge(pages)] == [True, False]
    assert facts["held_out"]["all"]["texts"]["mcc"] > 0.9
    assert facts["training"]["web"] == {"relevant": 80, "irrelevant": 160}
    assert {"cheese", "wine"} <= pack.keywords.words <= set(FOOD + OTHER)


def test_the_best_epoch_is_kept_and_training_stops_when_none_is_better(
    vectors: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = split_hosts(documents(), vectors, np.random.default_rng(0))
    figures = iter([0.1, 0.9] + [0.2] * fitting.PATIENCE + [0.1, 0.9])
    monkeypatch.setattr(fitting, "_validate", lambda *_: next(figures))
    patient = fitting.fit(split, vectors, seed=0, epochs=20).network.state_dict()
    short = fitting.fit(split, vectors, seed=0, epochs=2).network.state_dict()
    assert all(torch.equal(patient[name], short[name]) for name in short)
    assert next(figures, None) is None


def test_the_same_seed_makes_the_same_pack(models: Path, tmp_path: Path) -> None:
    """Bit for bit, whatever torch's own seed and number of threads."""
    vectors = models / "vectors" / "small.npz"
    written = []
    for run, (name, seed) in enumerate([("food", 1), ("food", 1), ("food", 2)]):
        torch.manual_seed(run)
        train_pack(models / name, KEYWORDS, documents(), vectors, seed=seed, date="d", epochs=2)
        written.append([path.read_bytes() for path in sorted((models / name).iterdir())])
        shutil.rmtree(models / name)
    assert written[0] == written[1]
    assert written[0][0] != written[2][0]


def test_training_leaves_the_state_of_torch_alone(models: Path) -> None:
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    train_pack(models / "food", KEYWORDS, documents(), models / "vectors" / "small.npz", epochs=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("relevant", [True, False])
def test_documents_of_both_labels_are_needed(models: Path, relevant: bool) -> None:
    one_sided = [d for d in documents() if d.relevant is relevant]
    with pytest.raises(ValueError, match=r"documents of both labels"):
        train_pack(models / "food", KEYWORDS, one_sided, models / "vectors" / "small.npz")


def test_vectors_outside_the_models_directory_are_refused(models: Path, tmp_path: Path) -> None:
    outside = shutil.copy(models / "vectors" / "small.npz", tmp_path)
    with pytest.raises(ValueError, match=r"beside the pack"):
        train_pack(models / "food", KEYWORDS, documents(), Path(outside))


def command(*arguments: str | Path) -> None:
    settings = Settings({"COMMANDS_MODULE": "tres_scrapy.commands"})
    execute(["scrapy", *map(str, arguments)], settings)


def test_the_command_writes_a_pack_and_prints_its_figures(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "keywords.txt").write_text("cheese\nwine\n")
    pages = records(tmp_path / "pages.jsonl.xz")
    arguments = ["food", "--keywords", tmp_path / "keywords.txt", "--output", models]
    arguments += ["--vectors", models / "vectors" / "small.npz", "--irrelevant", pages]
    with pytest.raises(SystemExit, match="0"):
        command("tres-train", *arguments, "--relevant", f"{pages}:label=True")
    assert Pack.load(models / "food").name == "food"
    assert "MCC" in capsys.readouterr().out


def test_the_command_names_a_missing_file_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "keywords.txt").write_text("cheese\n")
    arguments = ["--keywords", tmp_path / "keywords.txt", "--irrelevant", "x", "--relevant", "x"]
    with pytest.raises(SystemExit, match="documents 'x' must be a file"):
        command("tres-train", "food", *arguments)


def test_the_vectors_command_writes_vectors_of_the_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        command("tres-vectors", records(tmp_path / "a.jsonl.xz"), "--output", tmp_path / "v.npz")
    assert set(WordVectors.load(tmp_path / "v.npz").words) == set(FOOD + OTHER)
    assert "16 words" in capsys.readouterr().out
