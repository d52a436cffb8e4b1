"""The page that tells what a validation found (P 3.3)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, StrictUndefined

from tres_scrapy.page.file import whole_file
from tres_scrapy.training.summary import COLUMNS, mistakes, rows, sources, verdict
from tres_scrapy.training.validation_plot import draw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tres_scrapy.training.document import Document
    from tres_scrapy.training.validation import Validation

TEMPLATE: Final = "training_report.html.jinja"


def write_report(
    path: Path,
    facts: Mapping[str, Any],
    documents: Sequence[Document],
    validations: Sequence[Validation],
    census: object,
) -> None:
    """Write the page, one file that asks nothing of the network; same input, same bytes."""
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8"))
    chosen = validations[0]
    text = page.render(
        facts=facts,
        columns=COLUMNS,
        rows=rows(validations),
        verdict=verdict(validations),
        chosen=chosen,
        pictures=draw(validations),
        sources=list(sources(documents, chosen)),
        mistakes=mistakes(documents, chosen),
        census=census,
    )
    with whole_file(path) as file:
        file.write(text.encode(errors="replace"))  # a host may be half a letter
