"""The language of a text: a pack can only judge pages in its own language (P 3.1)."""

from __future__ import annotations

from functools import cache
from typing import Final

from py3langid.langid import (  # type: ignore[import-untyped]  # no stubs are published
    MODEL_FILE,
    LanguageIdentifier,
)

SAMPLE: Final = 300  # characters from the start and from the middle: a menu fills only one of them
MIN_LETTERS: Final = 40  # in UTF-8 bytes: one Chinese character counts as three English letters
MIN_CONFIDENCE: Final = 0.5  # encoded files and tables of numbers have no language


def detect_language(text: str, declared: str = "") -> str:
    """Return the ISO 639-1 code of a text, "" if it is unknown.

    `declared` is the language that the page declares, used if the text is too short.
    """
    middle = len(text) // 2
    sample = text if len(text) <= 2 * SAMPLE else text[:SAMPLE] + text[middle : middle + SAMPLE]
    if len("".join(filter(str.isalpha, sample)).encode()) < MIN_LETTERS:
        return _code(declared)
    language = str(_identifier().classify(sample)[0])
    return "" if language == "und" else language


def _code(declared: str) -> str:
    code = declared.strip().lower().replace("_", "-").partition("-")[0]
    return code if code in _identifier().labels else ""


@cache
def _identifier() -> LanguageIdentifier:
    """Return the library's own model, without languages that have three-letter codes."""
    identifier = LanguageIdentifier.from_model_file(
        MODEL_FILE, norm_probs=True, min_confidence=MIN_CONFIDENCE
    )
    identifier.set_languages([label for label in identifier.labels if len(label) == 2])
    return identifier
