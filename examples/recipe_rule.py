"""Judges a page by a rule: it is a recipe if it measures, and says what to do.

    tres crawl food --web synthetic --pages 200 --judge examples.recipe_rule:recipe

`docs/judge.md` explains it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tres_scrapy.page.text import Page

MEASURES = re.compile(r"\b(?:cups?|tbsp|tsp|tablespoons?|teaspoons?|grams?|ounces?)\b", re.I)
STEPS = re.compile(r"\b(?:preheat|whisk|simmer|stir|bake|chop|fry|boil|mix|serve)\w*\b", re.I)
ENOUGH = 3  # of both together


def recipe(pages: Sequence[Page]) -> list[float]:
    """Return P(relevant) of each page: 0.5 or more means relevant."""
    return [rated(f"{page.title} {page.text}") for page in pages]


def rated(text: str) -> float:
    """Return the share of ENOUGH different measures and steps, halved without both kinds."""
    measures = {each.lower() for each in MEASURES.findall(text)}
    steps = {each.lower() for each in STEPS.findall(text)}
    found = min(1.0, (len(measures) + len(steps)) / (2 * ENOUGH))
    return found if measures and steps else found / 2
