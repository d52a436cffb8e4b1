from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tres_scrapy.page.document_file import Unreadable
from tres_scrapy.training.document import Census, Document, Selection, Sentences, read_documents

GERMAN = "Der Bäcker schob das Brot in den Ofen und wartete, bis die Kruste braun war"


def write(path: Path, *lines: dict[str, Any]) -> Selection:
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return Selection(path)


def test_selection_is_path_and_records(tmp_path: Path) -> None:
    path = tmp_path / "a:b.jsonl"
    path.touch()
    assert Selection.parse(str(path)) == Selection(path)
    assert Selection.parse(str(tmp_path)) == Selection(tmp_path)
    assert Selection.parse(f"{path}:label=x,y") == Selection(path, "label", frozenset("xy"))
    for text in (f"{path}:label", "missing.jsonl", "missing.jsonl:label=x"):
        with pytest.raises(ValueError, match=r"FILE:FIELD=VALUE"):
            Selection.parse(text)


def test_selection_compares_values() -> None:
    selection = Selection(Path("x"), "label", frozenset(["food", "1"]))
    records = [{"label": "food"}, {"label": ["sport", "food"]}, {"label": 1}, {"label": "x"}, {}]
    assert [record in selection for record in records] == [True, True, True, False, False]


def test_star_selects_any_text() -> None:
    selection = Selection.parse(f"{__file__}:label=Music.*")
    records = [{"label": "Music.Jazz"}, {"label": ["x", "Music."]}, {"label": "Musician"}]
    assert [record in selection for record in records] == [True, True, False]


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [
        ("lable", "food", r"its fields are label, text$"),
        ("label", "Musik.*", r"values of 'label' are 'Music.Jazz', \.\.\.; \* stands for any text"),
        ("label", "qqq", r"values of 'label' are 'food', 'Music.Jazz', \.\.\.;"),
    ],
)
def test_empty_selection_names_the_nearest(
    tmp_path: Path, field: str, value: str, hint: str
) -> None:
    labels = ["food", "food", "Music.Jazz"]
    path = write(tmp_path / "a.jsonl", *({"text": "x", "label": label} for label in labels)).path
    with pytest.raises(ValueError, match=f"selects no documents: .*{hint}"):
        read_documents([Selection(path, field, frozenset([value]))], [])


def test_twice_selected_line_is_relevant(tmp_path: Path) -> None:
    every = write(tmp_path / "a.jsonl", {"text": "milk", "n": 1}, {"text": "wine", "n": 2})
    some = Selection(every.path, "n", frozenset("2"))
    for relevant in ([some], [some, every]):
        made, census = read_documents(relevant, [every])
        assert [(d.text, d.relevant) for d in made] == [("milk", every in relevant), ("wine", True)]
        assert census.read == 2


def test_answer_wins_over_a_side(tmp_path: Path) -> None:
    lines = [{"text": text, "url": f"http://{text}.org/"} for text in ("milk", "wine", "bread")]
    pages = write(tmp_path / "a.jsonl", *lines)
    answers = {"http://wine.org/": False, "http://other.org/": True}
    made, census = read_documents([pages], [], answers=answers)
    assert [document.relevant for document in made] == [True, False, True]
    assert (census.relevant, census.irrelevant) == (2, 1)


def test_answer_counts_for_the_redirected_page_and_its_copies(tmp_path: Path) -> None:
    final = "http://new.org/"
    item = {"text": "milk", "url": "http://old.org/", "final_url": final}
    pages = write(tmp_path / "a.jsonl", item, {"text": "Milk", "url": "http://copy.org/"})
    fetched = write(tmp_path / "a.fetched.jsonl", {"text": "milk", "url": final})
    for others in ([], [fetched]):
        (document,), census = read_documents([pages], others, answers={final: False})
        assert not document.relevant
        assert (census.relevant, census.irrelevant) == (0, 1)


def test_html_keeps_its_host(tmp_path: Path) -> None:
    html, url = "<html lang=en><title>T</title><p>cheese</p>", "https://www.shop.org/x"
    selection = write(tmp_path / "a.b.jsonl", {"html": html, "url": url})
    (document,) = read_documents([selection], [])[0]
    assert document == Document("T", "cheese", "a", "shop.org", True, url, "en")


def test_hostless_records_stand_alone(tmp_path: Path) -> None:
    lines = [{"text": "milk"}, {"text": "wine", "url": None}, {"text": "tea", "url": "http://["}]
    made, _ = read_documents([write(tmp_path / "a.jsonl", *lines)], [])
    assert len({document.host for document in made}) == 3
    assert made[0].url == "a.jsonl, line 1"


def test_hosts_match_across_files(tmp_path: Path) -> None:
    sides = [
        write(tmp_path / name, {"text": f"{name} milk"}, {"text": name, "url": "http://www.a.org/"})
        for name in ("food.jsonl", "other.jsonl")
    ]
    hosts = [document.host for document in read_documents(sides[:1], sides[1:])[0]]
    assert hosts == ["food.jsonl#0", "a.org", "other.jsonl#0", "a.org"]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    food = write(tmp_path / "food.jsonl", {"text": "Fresh  milk"}, {"text": "wine"}, {"text": "1."})
    other = write(
        tmp_path / "other.jsonl", {"text": "fresh milk!"}, {"text": GERMAN}, {"text": "a disk"}
    )
    made, census = read_documents([food], [other])
    assert [(d.text, d.relevant) for d in made] == [
        ("Fresh  milk", True),
        ("wine", True),
        ("a disk", False),
    ]
    assert (census.read, census.duplicates, census.clashes, census.empty) == (6, 1, 1, 1)
    assert census.foreign == {"de": 1}
    assert str(census).splitlines() == [
        "6 documents read: 2 relevant, 1 irrelevant",
        "1 left out as duplicates, 1 with the other label",
        "1 left out without words",
        "1 left out in another language: de 1",
    ]


def test_relevant_label_wins(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"text": "milk", "n": 1}, {"text": "milk", "n": 2}).path
    sides = [Selection(path, "n", frozenset(n)) for n in "12"]
    for relevant, irrelevant in (sides, sides[::-1]):
        made, census = read_documents([relevant], [irrelevant])
        assert [document.relevant for document in made] == [True]
        assert census.clashes == 1


def test_any_language_may_stay(tmp_path: Path) -> None:
    made, census = read_documents([write(tmp_path / "a.jsonl", {"text": GERMAN})], [], language="")
    assert made[0].language == "de"
    assert not census.foreign


@pytest.mark.parametrize(
    "line",
    [
        b'{"title": "t"}',
        b"[]",
        b"{",
        b"\xff",
        b'{"html": 1}',
        b"[" * 100_000,
        b'{"error": "HTTP 404"}',
    ],
)
def test_unreadable_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "milk"}\n' + line + b'\n\n{"text": "wine"}')
    made, census = read_documents([Selection(path)], [])
    assert [document.text for document in made] == ["milk", "wine"]
    assert census.unreadable == 1
    assert "  a.jsonl, line 2: " in str(census)


def test_the_first_faults_are_named(tmp_path: Path) -> None:
    lines = [{"text": "milk"}] * 8 + [{}] * 7
    _, census = read_documents([write(tmp_path / "a.jsonl", *lines)], [])
    assert str(census).count("must have") == 5
    assert str(census).endswith("and 2 more")


def test_a_hopeless_selection_is_refused(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.jsonl", {"text": "milk"}, {}, {})
    with pytest.raises(
        ValueError, match=r"bad.jsonl: 2 of 3 unreadable, such as bad.jsonl, line 2"
    ):
        read_documents([bad], [])
    good = write(tmp_path / "good.jsonl", {"text": "milk", "label": "food"})
    for nothing in (Selection(good.path, "label", frozenset(["tea"])), write(tmp_path / "e.jsonl")):
        with pytest.raises(ValueError, match=r"selects no documents"):
            read_documents([good], [nothing])


def test_folder_is_read_in_order(tmp_path: Path) -> None:
    for name, data in {
        "b.org/x/1.html": b"<title>T</title>milk",
        "a.org/2.txt": "caf\u00e9 cr\u00e8me".encode("cp1252"),
        "top.HTM": "<meta charset=koi8-r>\u0441\u044b\u0440".encode("koi8-r"),
        "utf16.xhtml": "<p>tea".encode("utf-16"),
        "a.org/notes.doc": b"milk",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "a.org" / "loop").symlink_to(tmp_path)
    made, census = read_documents([], [Selection(tmp_path)], language="")
    assert [(d.text, d.host, d.url) for d in made] == [
        ("\u0441\u044b\u0440", f"{tmp_path.name}#0", "top.HTM"),
        ("tea", f"{tmp_path.name}#1", "utf16.xhtml"),
        ("caf\u00e9 cr\u00e8me", "a.org", "a.org/2.txt"),
        ("milk", "b.org", "b.org/x/1.html"),
    ]
    assert census.unreadable == 0


def test_unreadable_file_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("milk")
    (tmp_path / "b.html").symlink_to(tmp_path / "missing")
    made, census = read_documents([Selection(tmp_path)], [])
    assert [document.text for document in made] == ["milk"]
    assert [fault.place for fault in census.faults] == ["b.html"]


def test_sentences_can_be_read_again(tmp_path: Path) -> None:
    selection = write(tmp_path / "a.jsonl", {"text": "Milk " * 1_001}, {"text": "Wine"})
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("Tea")
    (tmp_path / "b.txt").write_text("Beer\nAle")
    sentences = Sentences([selection.path, tmp_path / "texts", tmp_path / "b.txt"])
    assert [len(sentence) for sentence in sentences] == [1_000, 1, 1, 1, 2]
    assert list(sentences)[2:] == [["wine"], ["tea"], ["beer", "ale"]]


def test_sentences_need_readable_files(tmp_path: Path) -> None:
    selection = write(tmp_path / "a.jsonl", {"text": "milk"}, {})
    with pytest.raises(ValueError, match=r"a.jsonl, line 2"):
        list(Sentences([selection.path]))


def test_census_omits_what_never_happened() -> None:
    assert str(Census(read=2, relevant=1, irrelevant=1)) == (
        "2 documents read: 1 relevant, 1 irrelevant"
    )


def test_fault_is_escaped_for_terminal() -> None:
    census = Census()
    census.add_fault(Unreadable("\x1b]0;owned\x07http://a.org/\ud800", "\x9b2J\nno \u202epage"))
    assert str(census).splitlines()[-1] == "  ]0;ownedhttp://a.org/: 2Jno page"
