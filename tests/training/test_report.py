from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tres_scrapy.report.chart import plotly_script
from tres_scrapy.topic.classifier import Calibration
from tres_scrapy.training.document import Document
from tres_scrapy.training.report import write_report
from tres_scrapy.training.validation import Epoch, Validation

pytestmark = pytest.mark.slow

SAME = Calibration(1.0, 0.0)
HALF = (0.5, 0.5, 0.5)
TRUE = np.tile([True, False, False], 20)
HOSTILE = "</td><script>alert('x')</script>\x1b[31m\u202e"
FACTS: dict[str, Any] = {
    "name": "food",
    "threshold": 0.5,
    "keywords": {"given": ["wine"], "phrases": ["<b>"], "expanded": ["milk"], "b": 0.4},
    "classifier": {"kind": "bilstm", "hidden": 60},
    "training": {"seed": 3, "web": {"relevant": 20, "irrelevant": 40}},
}
VOID = {"meta", "link"}
CHARTS = ["curves"]


class Outline(HTMLParser):
    """Notes the elements of a page and asserts that each is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def validation(kind: str, seed: int, *, true: np.ndarray = TRUE) -> Validation:
    rng = np.random.default_rng(seed)
    texts = np.clip(0.2 + 0.6 * true + rng.normal(0, 0.2, len(true)), 0, 1)
    titles = np.where(np.arange(len(true)) % 7 == 0, np.nan, texts)
    histories = tuple((Epoch(1.0, 0.1), Epoch(0.5, 0.8), Epoch(0.4, 0.7)) for _ in range(3))
    return Validation(
        kind, np.arange(len(true)) // 3 % 3, true, texts, titles, HALF, 0.5, SAME, histories
    )


def documents(true: np.ndarray = TRUE) -> list[Document]:
    return [
        Document(HOSTILE if n % 2 else "", "first words", f"s{n % 2}", f"h{n}", bool(label))
        for n, label in enumerate(true)
    ]


@pytest.fixture
def models() -> list[Validation]:
    return [validation("bilstm", 0), validation("svm", 1)]


def text_of(path: Path) -> str:
    """Return the page without its longest script."""
    return path.read_text(encoding="utf-8").replace(plotly_script(), "")


def charts_of(page: str) -> Any:
    """Return the data of the charts, which must be strict JSON."""
    data = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    return json.loads(data[1], parse_constant=lambda name: pytest.fail(f"{name} in a chart"))


@pytest.fixture
def page(tmp_path: Path, models: list[Validation]) -> str:
    write_report(tmp_path / "report.html", FACTS, documents(), models, "60 read, <2> dropped")
    return text_of(tmp_path / "report.html")


def test_report_needs_no_network(page: str) -> None:
    outline = Outline(page)
    assert outline.open == []
    drawn = [value for name, value in outline.attributes if name == "data-figure"]
    assert drawn == list(charts_of(page)) == CHARTS
    assert "://" not in page
    loading = [value for name, value in outline.attributes if name in {"src", "href", "xlink:href"}]
    assert all(value.startswith(("#", "data:")) for value in loading if value)


def test_report_escapes_page_text(page: str) -> None:
    assert Outline(page).names.count("script") == 3
    assert "&lt;script&gt;alert(" in page
    assert "\x1b" not in page
    assert "60 read, &lt;2&gt; dropped" in page
    assert "&lt;b&gt;" in page


def test_chart_shows_the_models(page: str) -> None:
    charts = charts_of(page)
    names = [trace["name"] for trace in charts["curves"]["data"] if trace["name"]]
    assert [name.split(" ")[0] for name in names] == ["bilstm", "svm"]


def test_same_input_same_report(tmp_path: Path, models: list[Validation], page: str) -> None:
    write_report(tmp_path / "again.html", FACTS, documents(), models, "60 read, <2> dropped")
    assert text_of(tmp_path / "again.html") == page
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "again.html"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"titles": np.full(60, np.nan)},
        {"fold": np.where(TRUE, 0, 1)},
        {"texts": np.zeros(60)},
        {"texts": np.ones(60), "threshold": 1.0, "thresholds": (1.0,) * 3},
        {"texts": TRUE * 1.0},
    ],
    ids=["no-titles", "one-class-folds", "silent", "eager", "perfect"],
)
def test_poor_input_still_makes_a_report(tmp_path: Path, change: dict[str, Any]) -> None:
    models = [replace(validation("bilstm", 0), **change)]
    write_report(tmp_path / "report.html", FACTS, documents(), models, "")
    page = text_of(tmp_path / "report.html")
    assert Outline(page).open == []
    assert charts_of(page)
    assert "bilstm, texts, mean of" in page
    assert "nan" not in page


def test_two_documents_make_a_report(tmp_path: Path) -> None:
    true = np.array([True, False])
    models = [validation("svm", 0, true=true)]
    write_report(tmp_path / "report.html", FACTS, documents(true), models, "")
    assert "svm, fold 1: 1 of 2" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_binary_host_is_reported(tmp_path: Path) -> None:
    models = [replace(validation("svm", 0), texts=1.0 - TRUE)]
    odd = [replace(document, host="\ud800.org") for document in documents()]
    write_report(tmp_path / "report.html", FACTS, odd, models, "")
    assert "<td>?.org</td>" in (tmp_path / "report.html").read_text(encoding="utf-8")
