"""What is known of a link before anything is learned."""

import numpy as np

from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.links.model import KNOWN, known_of, prior_of


def logits(*anchors):
    """Return the logits of P(relevant) of links that differ in feature 6 alone."""
    x = np.zeros((len(anchors), len(FEATURES)), dtype=np.float32)
    x[:, 5] = anchors
    none = np.zeros(len(anchors), dtype=np.float32)
    means, _ = prior_of()
    return known_of(x, none, none) @ means


def test_a_better_anchor_text_makes_a_link_more_likely():
    low, middle, high = logits(0.1, 0.5, 0.97)
    assert low < middle < high


def test_an_anchor_text_that_names_nothing_does_not_count_against_its_link():
    """A link with the text "more" must not be hopeless where all others failed."""
    nothing, little, most, sure = logits(0.0, 0.1, 0.98, 1.0)
    assert nothing == little
    assert most == sure


def test_anchor_siblings_and_record_of_the_host_are_believed():
    means, precisions = prior_of()
    believed = {name for name, mean in zip(KNOWN, means, strict=True) if mean}
    assert believed == {"anchor_logit", "siblings", "host_logit"}
    assert (precisions > 0).all()
