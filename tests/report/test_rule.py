import math

import numpy as np
import pytest

from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.tree import Rule, Split, TreeFrontier
from tres_scrapy.run.reason import ANY_LINK, Condition, RuleBook, rule_phrase


def holds(conditions, x):
    return all(condition.low <= x[condition.feature] < condition.high for condition in conditions)


def test_rule_matches_its_leaf_only():
    random = np.random.default_rng(0)
    x = random.random((300, len(FEATURES)), dtype=np.float32)
    tree, book = TreeFrontier(lambda rows: x[rows]), RuleBook()
    seen = []
    for point in x:
        tree.add_experience(point, float(random.random() < point[2]))
        book.extend(tree.rules[len(book.rules) :])
        if len(seen) < 400:
            leaf = int(tree.leaf_of(x[:1])[0])
            seen.append((leaf, tree.splits, x[0]))
    assert len(tree) > 30
    for leaf in range(len(tree)):
        inside = tree.leaf_of(x) == leaf
        rule = book.conditions(leaf, tree.splits)
        assert [holds(rule, point) for point in x] == inside.tolist()
    assert all(holds(book.conditions(leaf, splits), point) for leaf, splits, point in seen)


def test_rule_is_of_its_time():
    book = RuleBook([Rule(0, Split(3, 0.5, 0.1)), Rule(1, Split(5, 0.25, 0.1))])
    assert book.words(0, 0) == ANY_LINK
    assert book.words(1, 1) == "links with a keyword in the URL"
    assert book.words(1, 2) == (
        "links with a keyword in the URL, whose anchor text is less than 25 % likely to be relevant"
    )
    assert book.words(0, 2) == "links without a keyword in the URL"


@pytest.mark.parametrize(
    ("feature", "low", "high", "words"),
    [
        ("parent_reward", 0.5, math.inf, "found on a relevant page"),
        ("parent_reward", -math.inf, 0.5, "found on an irrelevant page"),
        ("path_closeness", 0.75, math.inf, "that are 1 link after a relevant page"),
        ("path_closeness", 0.29, math.inf, "that are 1 to 3 links after a relevant page"),
        ("path_closeness", -math.inf, 0.29, "that are not 1 to 3 links after a relevant page"),
        ("path_closeness", -math.inf, 0.75, "that are not 1 link after a relevant page"),
        ("path_closeness", 0.29, 0.41, "that are 3 links after a relevant page"),
        ("path_relevance", 0.2, 0.4, "with 20 % to 40 % relevant pages on the path"),
        ("keyword_in_anchor", 0.5, math.inf, "with a keyword in the anchor text"),
        ("anchor_probability", -math.inf, 0.004, "whose anchor text is less than 0.400 % likely"),
        ("anchor_probability", 0.985, math.inf, "whose anchor text is at least 98.5 % likely"),
        (
            "domain_relevance",
            0.5,
            math.inf,
            "to a domain that is at least 50 % relevant",
        ),
        ("domain_known", -math.inf, 0.75, "to a new domain"),
    ],
)
def test_condition_in_words(feature, low, high, words):
    assert rule_phrase([Condition(FEATURES.index(feature), low, high)]).startswith(f"links {words}")


def test_distance_words_match_feature():
    closeness = FEATURES.index("path_closeness")
    for links in range(1, 9):
        edges = [1 / (links + 0.5), 1 / (links - 0.5)]
        said = rule_phrase([Condition(closeness, *edges)])
        assert said.startswith(f"links that are {links} link")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.507, 0.513, "51 % likely"), (0.2, 0.61, "20 % to 61 % likely")],
)
def test_range_of_equal_ends_is_one_figure(low, high, said):
    assert str(Condition(5, low, high)) == f"whose anchor text is {said} to be relevant"
