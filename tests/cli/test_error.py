"""Bad input is one line and a bug is a traceback, whatever the sub-command."""

import pytest
from conftest import command

from tres_scrapy.report import record_path
from tres_scrapy.url.message import TresError

FILES = {
    "binary.txt": b"\xff\xfe\x00",
    "empty.txt": b"",
    "broken.jsonl": b"not json\n",
    "one.jsonl": b'{"url": "http://a.test/", "text": "soup"}\n',
    "mixed.txt": b"http://a.test/\nhello\n",
    "answers.txt": b"maybe http://a.test/\n",
    "keywords.txt": b"soup\n",
    "noise.warc": b"hello\n",
    "broken.run": b"garbage",
    "models/broken/topic.toml": b"name = [",
}
SIDES = "--relevant one.jsonl --irrelevant one.jsonl"
LINES = {
    "answer broken.jsonl": "has no topic that learns",
    "classify broken one.jsonl --models models": "topic pack 'broken': ",
    "classify food one.jsonl -L loud": "LOG_LEVEL 'loud': must be one of CRITICAL",
    "classify food one.jsonl --words -1": "'--words': -1 is not in the range",
    "classify food one.jsonl -s DOWNLOAD_TIMEOUT=x": "DOWNLOAD_TIMEOUT 'x': must be a number",
    "explain broken.run http://a.test/": "broken.run is damaged",
    "pack save a/b .": "the name 'a/b' must be letters",
    "report broken.run": "broken.run is damaged",
    "seeds --keywords binary.txt http://a.test/": "keywords 'binary.txt' cannot be read",
    "seeds food http://a.test/ -s ROBOTSTXT_OBEY=perhaps": "ROBOTSTXT_OBEY 'perhaps': must be 1",
    f"train a/b --keywords keywords.txt {SIDES}": "topic 'a/b' must be letters",
    f"train tea --keywords binary.txt {SIDES}": "keywords file 'binary.txt': ",
    f"train tea --keywords empty.txt {SIDES}": "keywords file 'empty.txt': no keywords",
    f"train tea --keywords keywords.txt {SIDES}": "too few",
    f"train tea --keywords keywords.txt {SIDES} --seed -1": "'--seed': -1 is not in the range",
    "train tea --keywords keywords.txt --answers answers.txt": "must be a file of lines `yes URL`",
    "train tea --keywords keywords.txt --relevant mixed.txt": "'hello' must be an http(s) URL",
    "vectors --from binary.txt --output v.npz": "is not a word2vec or GloVe file",
    "vectors keywords.txt --output models": "--output 'models' is a folder",
    "vectors keywords.txt --output v.npz --epochs 0": "'--epochs': 0 is not in the range",
    "vectors keywords.txt --output v.npz --seed -1": "'--seed': -1 is not in the range",
    "web webs.deep:DeepWeb --collection x.jsonl": "--collection needs the web",
    "web deep": "must be one of synthetic, corpus, recorded, package.module:NAME",
    "web no.such:Web": "No module named 'no'",
    "web recorded": "a recorded web needs --data FILE",
    "web recorded --data noise.warc": "noise.warc has no response",
    "web synthetic --faults x": "faults 'x' must be KIND=SHARE:SECONDS",
    "web synthetic --pages 0 --collection x.jsonl": "'--pages': 0 is not in the range",
    "web synthetic --seed -1": "'--seed': -1 is not in the range",
    "web synthetic --topic tea": "topic='tea' has no synthetic web",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "models" / "broken").mkdir(parents=True)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("line", LINES)
def test_bad_input_is_one_line(line, capfd):
    pytest.importorskip(f"tres_scrapy.cli.{line.split()[0]}", reason="its guest is not here")
    with pytest.raises(SystemExit) as end:
        command(*line.split())
    assert end.value.code not in {0, None}
    printed = capfd.readouterr().err.splitlines()
    said = end.value.code if isinstance(end.value.code, str) else printed[-1]
    assert said.startswith(f"tres {line.split()[0]}: ")
    assert LINES[line] in said
    assert "\n" not in said


@pytest.mark.parametrize("bug", [ValueError, KeyError, TypeError])
def test_bug_is_a_traceback(bug, monkeypatch):
    def find(place):
        raise bug("an array has the wrong shape")

    monkeypatch.setattr(record_path, "find_record", find)
    with pytest.raises(bug) as error:
        command("report", "food.run")
    assert not isinstance(error.value, TresError)
