from __future__ import annotations

import json
import lzma
from functools import partial
from pathlib import Path

import pytest
from conftest import command

from tres_scrapy.topic.classifier import WordVectors

WORDS = ["cheese", "wine", "butter", "disk"]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    record = json.dumps({"title": "t", "text": " ".join(WORDS * 5)})
    with lzma.open(tmp_path / "texts.jsonl.xz", "wt", encoding="utf-8") as file:
        file.write(f"{record}\n{record}\n")
    return tmp_path / "texts.jsonl.xz"


vectors_command = partial(command, "vectors")


@pytest.mark.slow
def test_trained_vectors_are_written(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new" / "v.npz"
    with pytest.raises(SystemExit, match="0"):
        vectors_command(texts, "--output", output, "--dimension", 6, "--epochs", 2, "--words", 9)
    vectors = WordVectors.load(output)
    assert set(vectors.words) == set(WORDS)
    assert vectors.matrix.shape == (4, 6)
    out, err = capsys.readouterr()
    assert "4 words of 6 dimensions" in out
    assert "tres train TOPIC --vectors" in out
    assert "epoch 2 of 2" in err


def test_vectors_of_another_maker_are_converted(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("the 1 2\nmilk 3 4\nwine 5 6\n")
    with pytest.raises(SystemExit, match="0"):
        vectors_command(
            "--from", tmp_path / "glove.txt", "--output", tmp_path / "v.npz", "--words", 2
        )
    assert WordVectors.load(tmp_path / "v.npz").words == ["the", "milk"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["missing.jsonl", "--output", "v.npz"], "missing.jsonl"),
        (["empty.jsonl", "--output", "v.npz"], "hold 0 words"),
        (["--from", "missing.txt", "--output", "v.npz"], "'missing.txt' must be a file"),
        (["empty.jsonl", "--output", "."], "'.' is a folder"),
    ],
)
def test_vectors_error_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.jsonl").touch()
    with pytest.raises(SystemExit, match=rf"tres vectors: .*{reason}[^\n]*$"):
        vectors_command(*arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["empty.jsonl"]


@pytest.mark.parametrize("arguments", [[], ["texts.jsonl", "--from", "glove.txt"]])
def test_missing_input_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        vectors_command(*arguments, "--output", "v.npz")
    assert "give texts, or --from" in capsys.readouterr().err
