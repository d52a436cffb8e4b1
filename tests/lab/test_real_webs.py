"""The choices of benchmarks/real_webs.py, on a small recorded web."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from archived import answered
from comparing.result import Result, Run
from conftest import PROJECT

from tres_scrapy.export.warc import exchange_records
from tres_scrapy.lab.webs.recorded import RecordedWeb

LINKS = {
    "http://www.a.edu/1": ["/2", "/3", "/2", "/1", "/gone"],
    "http://www.a.edu/2": ["/1"],
    "http://www.a.edu/3": ["/1", "/2", "http://cs.a.edu/"],
    "http://www.a.edu/4": ["/1", "/2"],
    "http://cs.a.edu/": ["/nothing"],
    "http://www.b.edu/": ["http://www.a.edu/1"],
    "http://www.b.edu/2": [],
    "http://www.c.edu/": ["http://www.a.edu/1", "http://www.a.edu/2"],
}


@pytest.fixture
def real_webs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    import real_webs  # noqa: PLC0415 - found only now

    return real_webs


def recorded(folder: Path, links: Mapping[str, Sequence[str]], relevant: Sequence[str]):
    pages = {url: "".join(f"<a href={each}>x</a>" for each in links[url]) for url in links}
    records = [r for u, html in pages.items() for r in exchange_records(answered(u, html.encode()))]
    (folder / "web.warc").write_bytes(b"".join(records))
    (folder / "labels.txt").write_text("\n".join(relevant))
    return RecordedWeb(folder / "web.warc", folder / "labels.txt")


def test_hubs_link_to_recorded_pages(tmp_path: Path, real_webs: ModuleType) -> None:
    web = recorded(tmp_path, LINKS, [])
    assert list(real_webs.hubs(web)) == [
        "http://www.a.edu/3",
        "http://www.a.edu/1",
        "http://cs.a.edu/",
        "http://www.b.edu/",
        "http://www.b.edu/2",
    ]


def test_relevant_start_links_to_relevant_page(tmp_path: Path, real_webs: ModuleType) -> None:
    labels = ["http://www.a.edu/1", "http://www.b.edu/", "http://www.b.edu/2"]
    web = recorded(tmp_path, LINKS, labels)
    chosen = {real_webs.relevant_page(web, topic) for topic in ("food", "sports", "hardware")}
    assert chosen == {"http://www.b.edu/"}


def test_report_has_ablations_beside_policies(
    tmp_path: Path, real_webs: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_webs, "HERE", tmp_path)
    (tmp_path / "results").mkdir()
    for topic in ("food", "hardware", "course"):
        (tmp_path / f"starts-sites-{topic}.txt").write_text(
            "http://a.test/\nhttp://b.test,http://a.test/"
        )
    for folder, policy, found in (
        ("as-shipped", "tres", [1, 2]),
        ("as-shipped", "rivals:LOOKAHEAD", [1, 2]),
        ("TRES_GAMMA=0", "tres", [400]),
    ):
        run = Run("recorded", "food", 1, policy, "none", 400, "http://b.test/,http://a.test/")
        result = Result(run, 400, len(found), 1, 400, False, 1.0, found)
        (tmp_path / "sites" / folder / "runs").mkdir(parents=True, exist_ok=True)
        result.write(tmp_path / "sites" / folder / "runs")
    real_webs.report(["universities", "sites"], tmp_path)
    page = (tmp_path / "results" / "real.md").read_text()
    assert "## Sites, 400 pages" in page
    assert "| TRES | 1 | 2 | 2 | 2 | 2 | 1.000 |" in page
    assert "| tres TRES_GAMMA=0 | 1 | 0 | 0 | 1 | 1 | 0.001 |" in page
    rows = (tmp_path / "results" / "real.csv").read_text().splitlines()
    assert [row.split(",")[:6] for row in rows[1:]] == [
        ["sites", "food", policy, "none", "2", "1"]
        for policy in ("rivals:LOOKAHEAD", "tres", "tres TRES_GAMMA=0")
    ]
