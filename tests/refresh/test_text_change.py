import json
from random import Random

from tres_scrapy.refresh import text_change
from tres_scrapy.refresh.text_change import (
    PLACES,
    SHOWN,
    WORDS,
    Passage,
    Piece,
    page_changes,
    side_by_side,
)

OLD = "Soup with leek: chop the leek, then add cream and serve it hot"


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def visit(url, second, change, text):
    time = f"2026-11-21T10:00:{second:02}+00:00"
    return {"url": url, "change": change, "fetched_at": time, "title": "T", "text": text}


def test_words_that_differ_are_marked():
    (place,) = side_by_side(OLD, OLD.replace("add cream", "add no butter"))
    before = "Soup with leek: chop the leek, then add", "and serve it hot"
    assert place == Passage(
        [Piece(before[0], False), Piece("cream", True), Piece(before[1], False)],
        [Piece(before[0], False), Piece("no butter", True), Piece(before[1], False)],
    )
    assert side_by_side(OLD, OLD) == []
    assert side_by_side("", "new") == [Passage([], [Piece("new", True)])]


def test_distant_differences_are_places_of_their_own():
    words = [f"w{i}" for i in range(200)]
    new = ["first", *words[:100], "middle", *words[100:]]
    first, middle = side_by_side(" ".join(words), " ".join(new))
    assert [piece.text for piece in first.new if piece.differs] == ["first"]
    assert sum(len(piece.text.split()) for piece in middle.old) == 20


def test_old_text_is_of_the_visit_before_or_of_the_crawl(tmp_path):
    a, b = "http://a.test/", "http://b.test/"
    collection = write(tmp_path / "c.jsonl", {"url": a, "text": "one"}, {"url": "HTTP://B.test"})
    output = write(
        tmp_path / "o.jsonl",
        visit(a, 1, "changed", "two"),  # of an earlier run
        visit(a, 11, "changed", "three"),
        visit(b, 12, "minor", "new"),
        visit(a, 13, "unchanged", ""),
        visit(a, 14, "minor", "four"),
        {"n": 1},
    )
    last, unknown, first = page_changes(output, collection, 1_795_255_210.0)
    assert unknown.places == []
    assert [(p.old[0].text, p.new[0].text) for p in first.places] == [("two", "three")]
    assert [(p.old[0].text, p.new[0].text) for p in last.places] == [("three", "four")]
    assert page_changes(tmp_path / "none", collection, 0.0) == []
    (earliest, *_) = page_changes(output, collection, 0.0)[::-1]
    assert earliest.places[0].old == [Piece("one", True)]


def test_few_changes_and_places_are_kept(tmp_path):
    words = [f"w{i}" for i in range(40 * (PLACES + 1))]
    new = [word if i % 40 else "x" for i, word in enumerate(words)]
    urls = [f"http://{i}.test/" for i in range(SHOWN + 3)]
    pages = [{"url": url, "text": " ".join(words)} for url in urls]
    visits = [visit(url, 1, "changed", " ".join(new)) for url in urls]
    found = page_changes(write(tmp_path / "o", *visits), write(tmp_path / "c", *pages), 0.0)
    assert [page.url for page in found] == urls[:2:-1]
    assert (len(found[0].places), found[0].more) == (PLACES, 1)


def test_common_head_and_tail_are_not_compared():
    words = [f"w{i}" for i in range(6 * WORDS)]
    new = [*words[: 3 * WORDS], "middle", *words[3 * WORDS :]]
    (place,) = side_by_side(" ".join(words), " ".join(new))
    assert [piece.text for piece in place.new if piece.differs] == ["middle"]
    assert [len(piece.text.split()) for piece in place.new] == [10, 1, 10]
    (repeated,) = side_by_side("a a a", "a a a a")
    assert [piece.text for piece in repeated.new if piece.differs] == ["a"]


def test_long_texts_of_few_words_are_cut(monkeypatch):
    compared = []
    matcher = text_change.SequenceMatcher

    def compare(junk, before, after, **options):
        compared.append((len(before), len(after)))
        return matcher(junk, before[:9], after[:9], **options)

    monkeypatch.setattr(text_change, "SequenceMatcher", compare)
    old, new = (" ".join(Random(seed).choices("ab", k=9 * WORDS)) for seed in (1, 2))
    side_by_side(old, new)
    assert compared == [(WORDS, WORDS)]


def test_last_changes_have_no_places_when_time_is_up(tmp_path, monkeypatch):
    urls = [f"http://{i}.test/" for i in range(3)]
    collection = write(tmp_path / "c", *({"url": url, "text": "old"} for url in urls))
    output = write(tmp_path / "o", *(visit(url, 1, "changed", "new") for url in urls))
    times = iter([0.0, 1.0, 2.5, 3.0])
    monkeypatch.setattr(text_change, "process_time", lambda: next(times))
    found = page_changes(output, collection, 0.0)
    assert [(page.url, len(page.places)) for page in found] == [
        (urls[2], 1),
        (urls[1], 0),
        (urls[0], 0),
    ]


def test_visit_without_a_text_has_no_words(tmp_path):
    collection = write(tmp_path / "c", {"url": "http://a.test/", "text": "old"})
    output = write(tmp_path / "o", visit("http://a.test/", 1, "changed", None) | {"title": None})
    (page,) = page_changes(output, collection, 0.0)
    assert (page.title, page.places) == ("", [Passage([Piece("old", True)], [])])
