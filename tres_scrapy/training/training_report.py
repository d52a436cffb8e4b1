"""The HTML report of a training: the results of its cross-validation (P 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tres_scrapy.report.chart_page import chart_page, write_page
from tres_scrapy.training.summary import COLUMNS, mistakes, rows, sources, verdict
from tres_scrapy.training.validation_plot import draw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tres_scrapy.training.document import Document
    from tres_scrapy.training.validation import Validation

TEMPLATE: Final = "training/training_report.html.jinja"


def write_report(
    path: Path,
    facts: Mapping[str, Any],
    documents: Sequence[Document],
    validations: Sequence[Validation],
    census: object,
) -> None:
    """Write the page as one file without network requests; same input, same bytes."""
    chosen = validations[0]
    text = chart_page(
        TEMPLATE,
        draw(validations),
        facts=facts,
        columns=COLUMNS,
        rows=rows(validations),
        verdict=verdict(validations),
        chosen=chosen,
        sources=list(sources(documents, chosen)),
        mistakes=mistakes(documents, chosen),
        census=census,
    )
    write_page(path, text)
