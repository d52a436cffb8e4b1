from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import command

from tres_scrapy.lab.webs.corpus import CorpusWeb
from tres_scrapy.lab.webs.excerpt import FAVOUR, HOST_PAGES, Excerpt, Row
from tres_scrapy.lab.webs.synthetic import SyntheticWeb

WEB = SyntheticWeb("space", seed=1)
LARGE = Excerpt(WEB, 2000)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(Excerpt(WEB, 500).rows())


def test_excerpt_has_the_pages_asked_for(rows: list[Row]) -> None:
    hosts = Counter(urlsplit(row["url"]).hostname for row in rows)
    assert len({row["url"] for row in rows}) == 500
    assert max(hosts.values()) <= HOST_PAGES
    assert Excerpt(WEB, 500).hosts == len(hosts)


def test_same_seed_same_excerpt(rows: list[Row]) -> None:
    assert list(Excerpt(SyntheticWeb("space", seed=1), 500).rows()) == rows
    assert list(Excerpt(SyntheticWeb("space", seed=2), 500).rows()) != rows


def test_categories_are_the_labels_of_the_web(rows: list[Row]) -> None:
    about = ["space" in row["categories"] for row in rows]
    assert about == WEB.labels([row["url"] for row in rows])
    assert sum(about) == Excerpt(WEB, 500).relevant > 0


def test_every_topic_has_hosts() -> None:
    sites = {site for site, _ in LARGE._pages}
    hosts = Counter(int(WEB.sites.main[site]) for site in sites)
    others = [count for topic, count in hosts.items() if topic != WEB.sites.topic]
    assert len(others) == 15
    assert min(others) * FAVOUR <= hosts[WEB.sites.topic] <= max(others) * FAVOUR


def test_most_pages_can_be_reached() -> None:
    links = {row["url"]: row["links"] for row in LARGE.rows()}
    waiting = [next(iter(links))]
    found = set(waiting)
    for url in waiting:
        new = set(links[url]) - found
        found |= new
        waiting += new
    assert len(found) > 1500


def test_excerpt_has_the_titles_of_the_web(rows: list[Row]) -> None:
    for row in rows[::50]:
        assert f"<title>{row['title']}</title>".encode() in WEB.answer(row["url"]).body


def test_corpus_web_serves_an_excerpt(rows: list[Row], tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    web = CorpusWeb(path, "space")
    urls = [row["url"] for row in rows]
    assert web.labels(urls) == WEB.labels(urls)
    assert {web.answer(url).kind for row in rows for url in row["links"]} == {"page"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("synthetic", "--topic", "tea"), "topic='tea' has no synthetic web; choose one of food"),
        (("webs.deep:DeepWeb",), "--collection needs the web `synthetic`"),
    ],
)
def test_wrong_collection_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(SystemExit, match=f"tres web: {complaint}"):
        command("web", *arguments, "--collection", tmp_path / "web.jsonl")
    assert not list(tmp_path.iterdir())


def test_command_writes_an_excerpt(
    tmp_path: Path, rows: list[Row], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "web.jsonl"
    asked = ("synthetic", "--topic", "space", "--seed", "1", "--pages", "500")
    with pytest.raises(SystemExit) as end:
        command("web", *asked, "--collection", path)
    assert not end.value.code
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == rows
    hosts = len({urlsplit(row["url"]).hostname for row in rows})
    relevant = sum("space" in row["categories"] for row in rows)
    said = f"500 pages from {hosts} hosts, {relevant} of them on space, written to {path}\n"
    assert capsys.readouterr().out == said
