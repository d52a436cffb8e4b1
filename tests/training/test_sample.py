from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tres_scrapy.topic.classifier import MAX_WORDS, Text
from tres_scrapy.training.document import Document
from tres_scrapy.training.sample import (
    IRRELEVANT_PER_RELEVANT,
    MAX_SNIPPET,
    MAX_WINDOW,
    RELEVANT_PER_BATCH,
    Example,
    Sampler,
    example,
    snippet,
)
from tres_scrapy.training.validation import stripes


def make(words: str, *, source: str = "web", relevant: bool = False) -> Example:
    return Example(Text(words.split()), Text(words.split()[:1]), source, relevant)


def documents(count: int, source: str = "web") -> list[Document]:
    return [Document("", "x", source, f"host{n // 3}", n % 4 == 0) for n in range(count)]


def test_example_is_first_words() -> None:
    made = example(Document("A Cheese", "b2 wine " * MAX_WORDS, "web", "h", True, "https://h/"))
    assert made.text.words[:3] == ["cheese", "wine", "wine"]
    assert len(made.text.words) == MAX_WORDS
    assert (made.title.words, made.text.url, made.relevant) == (["cheese"], "https://h/", True)


def test_file_name_is_no_url() -> None:
    assert example(Document("", "wine", "web", "h", True, "cheese.jsonl, line 3")).text.url == ""


def test_hosts_stay_in_one_stripe() -> None:
    made = documents(300)
    stripe = stripes(made, 10, seed=0)
    places = {}
    for document, place in zip(made, stripe.tolist(), strict=True):
        assert places.setdefault(document.host, place) == place
    relevant = Counter(stripe[[d.relevant for d in made]].tolist())
    assert set(Counter(stripe.tolist()).values()) <= {27, 30, 33}
    assert min(relevant[n] for n in range(10)) >= 6


def test_ten_hosts_fill_ten_stripes() -> None:
    made = [Document("", "x", f"source{n % 10}", f"host{n}", n < 10) for n in range(20)]
    found = stripes(made, 10, seed=0).tolist()
    assert sorted(found[:10]) == sorted(found[10:]) == list(range(10))


def test_host_of_two_sources_is_one() -> None:
    sides = (("good", True), ("other", False))
    made = [Document("", "x", s, f"host{n}", label) for n in range(50) for s, label in sides]
    found = stripes(made, 10, seed=0)
    assert found[::2].tolist() == found[1::2].tolist()


@pytest.mark.parametrize("relevant", [True, False])
def test_stripe_needs_both_labels(relevant: bool) -> None:
    made = [Document("", "x", "web", f"host{n % 9}", relevant) for n in range(30)]
    made += [Document("", "x", "web", f"other{n}", not relevant) for n in range(30)]
    with pytest.raises(ValueError, match="of 9 hosts are too few"):
        stripes(made, 10, seed=0)


def test_stripes_depend_on_the_seed_alone() -> None:
    made = documents(90)
    assert stripes(made, 10, seed=1).tolist() == stripes(made, 10, seed=1).tolist()
    assert stripes(made, 10, seed=1).tolist() != stripes(made, 10, seed=2).tolist()


def test_batches_keep_the_relevant_share() -> None:
    """P 3.3: stratified batches; every relevant document has its turn in an epoch."""
    food = [make(f"cheese{n} wine", relevant=True) for n in range(5)]
    sampler = Sampler([*food, *(make("disk cable") for _ in range(50))], np.random.default_rng(0))
    batches = list(sampler.epoch())
    for _, labels in batches:
        assert len(labels) == (1 + IRRELEVANT_PER_RELEVANT) * labels.sum()
    titles = Counter(" ".join(text.words) for texts, _ in batches for text in texts)
    shares = [titles[f"cheese{n}"] for n in range(5)]
    assert max(shares) < 1.3 * min(shares)


def test_every_irrelevant_document_is_met() -> None:
    others = [make(f"disk{n}") for n in range(1_000)]
    sampler = Sampler([make("cheese", relevant=True), *others], np.random.default_rng(0))
    met = {text.words[0] for texts, _ in sampler.epoch() for text in texts if text.words}
    assert len(met) == 1_001


@pytest.mark.parametrize(
    ("relevant", "batches"), [(1, 20), (RELEVANT_PER_BATCH * 25, 25), (9_999, 40)]
)
def test_epoch_length_is_bounded(relevant: int, batches: int) -> None:
    made = [make("cheese", relevant=True)] * relevant + [make("disk")]
    sampler = Sampler(made, np.random.default_rng(0))
    assert len(list(sampler.epoch())) == sampler.batches == batches


def test_sources_share_half_the_draws() -> None:
    many, few = [make("disk", source="many")] * 900, [make("goal", source="few")] * 100
    food = [make("cheese", relevant=True)]
    sampler = Sampler([*many, *few, *food], np.random.default_rng(0))
    drawn = Counter(text.words[0] for texts, _ in sampler.epoch() for text in texts if text.words)
    assert drawn["goal"] / (drawn["goal"] + drawn["disk"]) == pytest.approx(0.3, abs=0.03)


def test_views_are_three() -> None:
    words = [f"w{n}" for n in range(900)]
    drawn = Example(Text(words), Text(["title"]), "web", relevant=True)
    sampler = Sampler([drawn, make("disk")], np.random.default_rng(0))
    for _ in range(50):
        texts, _ = next(iter(sampler.epoch()))
        window, part, title = (text.words for text in texts[:3])
        assert 0 < len(window) <= MAX_WINDOW
        assert set(window) <= set(words)
        assert list(part) == words[int(part[0][1:]) :][: len(part)]
        assert 0 < len(part) <= MAX_SNIPPET
        assert title == ["title"]


def test_a_snippet_of_nothing_is_nothing() -> None:
    assert snippet(Text([]), np.random.default_rng(0)).words == []
