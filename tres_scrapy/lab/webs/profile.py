"""How common a topic is on the synthetic web, and how closely its pages are linked."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.lab.webs.vocabulary import topics


@dataclass(frozen=True, slots=True)
class Profile:
    """The shares of one topic."""

    prevalence: float  # share of the sites that are about the topic
    strong: float  # share of a relevant page's outward links that stay in the topic
    weak: float  # the same for an irrelevant page on one of the topic's sites
    leak: float  # the same for a page anywhere else
    faint: float  # share of relevant pages with few words of the topic
    tempting: float  # share of irrelevant pages with many words of the topic
    doubt: float  # share of the topic's words at which the relevance of a page is unclear


# Calibrated: benchmarks/calibration.py measures their effect.
PROFILES = {
    "food": Profile(0.05, 0.49, 0.28, 0.07, 0.09, 0.009, 0.52),
    "sports": Profile(0.04, 0.32, 0.13, 0.016, 0.09, 0.012, 0.18),
    "hardware": Profile(0.03, 0.15, 0.08, 0.002, 0.13, 0.012, 0.45),
}

# Of a topic that the paper does not measure: halfway between sports and hardware.
OTHER = Profile(0.035, 0.24, 0.1, 0.009, 0.11, 0.012, 0.32)


def profile_of(topic: str) -> Profile:
    """Return the profile of a topic; raise ValueError if no word table has the topic."""
    if topic not in topics():
        raise ValueError(
            f"topic={topic!r} has no synthetic web; choose one of {', '.join(topics())}"
        )
    return PROFILES.get(topic, OTHER)
