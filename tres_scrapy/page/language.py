"""The language of a text: a pack of one language has nothing to say about another (P 3.1)."""

from __future__ import annotations

from functools import cache
from typing import Final

from py3langid.langid import (  # type: ignore[import-untyped]  # no stubs are published
    MODEL_FILE,
    LanguageIdentifier,
)

SAMPLE: Final = 300  # characters from the start and as many from the middle: menus lie in one place
MIN_LETTERS: Final = 40  # in UTF-8 bytes: a character of Chinese says as much as three of English
MIN_CONFIDENCE: Final = 0.5  # encoded files and tables of numbers are in no language


def detect_language(text: str, declared: str = "") -> str:
    """Return the ISO 639-1 code of a text, "" when it cannot be told.

    `declared` is what the page says of itself, believed when there is too little text to tell.
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
    """Return the model that the library carries, without its languages of three letters."""
    identifier = LanguageIdentifier.from_model_file(
        MODEL_FILE, norm_probs=True, min_confidence=MIN_CONFIDENCE
    )
    identifier.set_languages([label for label in identifier.labels if len(label) == 2])
    return identifier
