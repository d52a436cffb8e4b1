import json

import pytest

from tres_scrapy.refresh.collection import LEAST_WEIGHT, read_collection
from tres_scrapy.url.message import TresError


def write(path, *rows):
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_items_bring_text_time_relevance(tmp_path):
    row = {
        "url": "http://a.test/1",
        "title": "T",
        "text": "some text",
        "probability": 0.7,
        "fetched_at": "2026-01-02T00:00:00+00:00",
    }
    (known,) = read_collection(write(tmp_path / "c.jsonl", json.dumps(row)))
    assert (known.url, known.weight, known.fetched) == ("http://a.test/1", 0.7, 1767312000.0)
    assert known.copy is not None
    assert known.copy.loose


def test_urls_are_enough_and_come_once(tmp_path):
    rows = [
        '{"url": "HTTP://A.test"}',
        "",
        '{"url": "http://a.test/"}',
        '{"url": "http://b.test/"}',
    ]
    known = list(read_collection(write(tmp_path / "c.jsonl", *rows)))
    assert [page.url for page in known] == ["http://a.test/", "http://b.test/"]
    assert (known[0].weight, known[0].fetched, known[0].copy) == (1.0, None, None)


def test_user_weight_beats_relevance(tmp_path):
    rows = [
        '{"url": "http://a.test/", "weight": 3, "probability": 0.1}',
        '{"url": "http://b.test/", "probability": 0.0}',
    ]
    weights = [page.weight for page in read_collection(write(tmp_path / "c.jsonl", *rows))]
    assert weights == [3, LEAST_WEIGHT]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "line 1: '{' must be a JSON object"),
        ('{"link": "x"}', "must be a JSON object with an http"),
        ('{"url": "ftp://a.test/"}', "must be a JSON object with an http"),
        ('{"url": "http://a.test/", "weight": "x"}', "weight 'x' must be a number"),
        ('{"url": "http://a.test/", "fetched_at": "soon"}', "fetched_at 'soon' must be"),
        ("", "holds no page"),
    ],
)
def test_collection_error_is_one_line(tmp_path, row, said):
    with pytest.raises(TresError, match=r"c\.jsonl") as raised:
        list(read_collection(write(tmp_path / "c.jsonl", row)))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(TresError, match="cannot be read"):
        list(read_collection(tmp_path / "no.jsonl"))
