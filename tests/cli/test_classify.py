from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest
from conftest import PROJECT, TRES, command, interpreter

from tres_scrapy.topic.classifier import TFIDF, BagOfWords
from tres_scrapy.topic.keyword_topic import PageWords
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.topic.topic_folder import TopicFolder

FOOD = "Cheese and wine are on the table, and there is also some bread with butter for everybody."
GERMAN = "Der Käse und der Wein stehen auf dem Tisch, und es gibt auch etwas Brot mit Butter."
PAGE = f"<html><head><title>The table</title></head><body><p>{FOOD}</p></body></html>"

Answer = tuple[int, str, str]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A directory with one linear pack."""
    words = ["cheese", "wine", "disk"]
    weights = np.array([[1, 1, 1], [2, 1, -2]], dtype=np.float32)
    classifier = BagOfWords(TFIDF, words, weights, 0.0)
    facts = {
        "name": "food",
        "language": "en",
        "threshold": 0.5,
        "keywords": {"given": ["cheese"], "phrases": [], "expanded": ["wine"]},
        "classifier": {"kind": TFIDF, "slope": 1.0, "intercept": 0.0} | classifier.sizes(),
    }
    write_pack(tmp_path / "models" / "food", facts, classifier)
    return tmp_path / "models"


@pytest.fixture
def classify(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """Run the command as a user would and return its status and what it wrote."""

    def run(*arguments: str | Path, topic: str = "food", stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin)))
        with pytest.raises(SystemExit) as exited:
            command("classify", topic, "--models", models, *arguments)
        out, err = capsys.readouterr()
        if isinstance(exited.value.code, int):
            return exited.value.code, out, err
        return 1, out, f"{exited.value.code}"  # as the interpreter does with a message

    return run


def records(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_document_is_explained(classify: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    status, out, err = classify(tmp_path / "a.html")
    assert (status, err) == (0, "")
    name, title, verdict, language, keywords, words, _, tally = out.splitlines()
    assert (name, title) == (f"{tmp_path / 'a.html'}", "  The table")
    assert "relevant: P = 0.893" in verdict
    assert "threshold 0.500" in verdict
    assert language.split() == ["language", "en"]
    assert keywords.split(maxsplit=1)[1] == "cheese 1, wine 1"
    assert words.split()[:2] == ["for", "cheese"]
    assert tally == "1 judged, 1 of them relevant"


def test_kept_pages_of_a_topic_are_judged(classify: Callable[..., Answer], tmp_path: Path) -> None:
    pages = TopicFolder(tmp_path)
    words = Counter(f"{'The table'} {FOOD}".lower().replace(",", "").replace(".", "").split())
    pages.add_page(1, "0f", PageWords("http://a.test/", "The table", "Cheese and", words))
    (tmp_path / "a.html").write_text(PAGE)
    found = []
    for name in ("pages.jsonl", "a.html"):
        status, out, err = classify("--json", tmp_path / name)
        assert (status, err) == (0, "")
        found += records(out)
    assert [page["title"] for page in found] == ["The table", "The table"]
    assert found[0]["name"] == "http://a.test/"
    assert found[0]["probability"] == pytest.approx(found[1]["probability"])
    (tmp_path / "pages.jsonl").write_text('[1, "0f", "http://a.test/", "", "", {"a": "b"}]\n')
    assert "must have 'html' or 'text'" in classify(tmp_path / "pages.jsonl")[2]


@pytest.mark.parametrize(
    ("stdin", "count", "title"),
    [
        (PAGE.encode(), 1, "The table"),
        (FOOD.encode(), 1, ""),
        (
            f"{json.dumps({'title': 'a', 'text': FOOD})}\n{json.dumps({'html': PAGE})}\n".encode(),
            2,
            "a",
        ),
    ],
    ids=["html", "text", "jsonl"],
)
@pytest.mark.parametrize("source", [[], ["-"]])
def test_standard_input_is_read(
    classify: Callable[..., Answer], stdin: bytes, count: int, title: str, source: list[str]
) -> None:
    status, out, _ = classify("--json", *source, stdin=stdin)
    found = records(out)
    assert status == 0
    assert len(found) == count
    assert found[0]["title"] == title
    assert all(record["relevant"] and record["words"] for record in found)


def test_foreign_page_is_reported(classify: Callable[..., Answer]) -> None:
    _, out, _ = classify(stdin=GERMAN.encode())
    assert "language  de: the pack reads en, so its probability is unreliable" in out
    assert "1 in a language that the pack does not read: de 1" in out


def test_unreadable_input_does_not_stop_others(
    classify: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text(FOOD)
    (tmp_path / "b.jsonl").write_text('{"text": "disk"}\n{"text": \n')
    (tmp_path / "empty").mkdir()
    missing = tmp_path / "missing\x1b.html"
    status, out, err = classify(
        missing,
        tmp_path / "empty",
        tmp_path / "b.jsonl",
        "http://x:y/",
        tmp_path / "a.txt",
        "--json",
    )
    assert status == 1
    assert [record["name"] for record in records(out)] == [
        f"{tmp_path / 'b.jsonl'}, line 1",
        f"{tmp_path / 'a.txt'}",
    ]
    assert [line.partition(": ")[2].partition(":")[0] for line in err.splitlines()][:3] == [
        f"{tmp_path}/missing.html",
        f"{tmp_path / 'empty'}",
        f"{tmp_path / 'b.jsonl'}, line 2",
    ]
    assert len(err.splitlines()) == 4


def test_many_documents_have_a_line_each(classify: Callable[..., Answer], tmp_path: Path) -> None:
    folder = tmp_path / "pages" / "example.org"
    folder.mkdir(parents=True)
    for number in range(70):  # more than a batch
        (folder / f"{number:02}.html").write_text(PAGE)
    status, out, _ = classify(tmp_path / "pages")
    *lines, tally = out.splitlines()
    assert (status, len(lines)) == (0, 70)
    assert all("relevant" in line and line.endswith("The table") for line in lines)
    assert str(folder / "69.html") in lines[-1]
    assert tally == "70 judged, 70 of them relevant"


def test_faults_beyond_the_first_are_counted(
    classify: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text("{\n" * 25)
    status, out, err = classify(tmp_path / "a.jsonl")
    assert status == 1
    assert len(err.splitlines()) == 21
    assert err.splitlines()[-1] == "5 more could not be read"
    assert out == "0 judged, 0 of them relevant; 25 could not be read\n"


def test_ctrl_c_prints_what_is_done(
    classify: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(path: Path) -> bool:
        raise KeyboardInterrupt

    (tmp_path / "a.txt").write_text(FOOD)
    monkeypatch.setattr(Path, "exists", lambda self: self.name != "b.txt" or interrupt(self))
    status, out, err = classify(tmp_path / "a.txt", tmp_path / "b.txt", "--brief")
    assert status == 130
    assert err == "interrupted\n"
    assert "a.txt" in out
    assert out.endswith("1 judged, 1 of them relevant\n")


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (
            {"topic": "fod"},
            1,
            "unknown topic 'fod'; did you mean food? The packs in models/ are food;",
        ),
        ({"topic": "--bogus"}, 2, "unknown option --bogus"),
    ],
)
def test_what_is_wrong_is_said(
    classify: Callable[..., Answer], arguments: dict[str, str], status: int, reason: str
) -> None:
    answer, out, err = classify("a.txt", **arguments)
    assert answer == status
    assert out == ""
    assert reason in err


def test_negative_word_count_is_refused(classify: Callable[..., Answer]) -> None:
    status, _, err = classify("--words", "-1")
    assert status == 2
    assert "invalid value for '--words': -1 is not in the range x>=0" in err


def test_a_list_of_urls_is_fetched(tres, pages, models: Path, tmp_path: Path) -> None:
    pages.add("http://example.org/", PAGE)
    (tmp_path / "list.txt").write_text("# mine\nhttp://example.org/\n")
    (tmp_path / "odd.txt").write_text("http://example.org/\nprose\n")
    settings = ["-s", "AUTOTHROTTLE_START_DELAY=0", "-s", f"TRES_MODELS={models}"]
    names = [tmp_path / "list.txt", tmp_path / "odd.txt"]
    done = tres("classify", "food", *names, "--json", *settings, pages=pages)
    (record,) = records(done.stdout)
    assert record["name"] == "http://example.org/"
    assert "odd.txt" in done.stderr
    assert "Traceback" not in done.stderr


def test_urls_are_fetched_politely(tres, pages, models: Path) -> None:
    pages.add("http://example.org/", PAGE)
    pages.add("http://example.org/private", PAGE)
    pages.add("http://example.org/robots.txt", "User-agent: *\nDisallow: /private")
    delays = ["-s", "DOWNLOAD_DELAY=0", "-s", "AUTOTHROTTLE_START_DELAY=0"]
    urls = ["http://example.org", "http://example.org/private", "http://example.org/gone"]
    settings = [*delays, "-s", f"TRES_MODELS={models}"]
    done = tres("classify", "food", *urls, "--json", *settings, pages=pages)
    (record,) = records(done.stdout)
    assert (record["name"], record["title"]) == ("http://example.org/", "The table")
    assert pages.fetched() == ["http://example.org/", "http://example.org/gone"]
    assert "http://example.org/private: Forbidden by robots.txt" in done.stderr
    assert "http://example.org/gone: HTTP 404" in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert done.returncode == 1


def test_url_needs_no_scheme(classify, monkeypatch, caplog, tmp_path) -> None:
    asked: list[str] = []
    module = sys.modules["tres_scrapy.spiders.named_source"]
    monkeypatch.setattr(module, "_fetch", lambda urls, settings: asked.extend(urls) or ())
    monkeypatch.chdir(tmp_path)
    Path("example.com").write_text(PAGE)
    status, out, err = classify("example.org/soup", "example.com", "soup.html")
    assert asked == ["https://example.org/soup"]
    assert caplog.messages == ["No scheme given: taken as https://example.org/soup"]
    assert "no such file" in err
    assert "1 judged" in out
    assert status == 1


@pytest.mark.slow
def test_closed_output_is_no_error(models: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f"{json.dumps({'text': FOOD})}\n" * 200)
    read, write = os.pipe()
    os.close(read)
    arguments = ["classify", "food", tmp_path / "a.jsonl", "--models", models]
    done = subprocess.run(
        [interpreter().path, "-m", TRES, *map(str, arguments)],
        cwd=PROJECT,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    os.close(write)
    assert done.stderr == b""


@pytest.mark.long
@pytest.mark.slow
def test_training_libraries_stay_away(models: Path) -> None:
    program = (
        "import sys; from tres_scrapy.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'gensim', 'matplotlib', 'sklearn'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "classify", "food", "--json", "--models", str(models)],
        cwd=PROJECT,
        input=FOOD.encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines()[1:] == [b"[]"]
