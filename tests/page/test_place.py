from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.page import place
from tres_scrapy.page.place import (
    HEADING_WORDS,
    MAX_WORD_LENGTH,
    NOWHERE,
    WORDS,
    Place,
)
from tres_scrapy.page.text import read_page

URL = "http://shop.test/cheese/index.html"
LONG = "x" * (MAX_WORD_LENGTH + 1)


def places(html: str) -> dict[str, Place]:
    page = read_page(html, URL, places=True)
    names = (link.url.removeprefix("http://shop.test/cheese/") for link in page.links)
    return dict(zip(names, page.places, strict=True))


# A node is a text or (tag, children); of a link, the children hold no link.
TEXT = st.lists(
    st.sampled_from(["soup brie", "Ham", "a", "2024", "\u00c9\u00e9", LONG, "of many words " * 9]),
    max_size=3,
)
PLAIN = st.builds(" ".join, TEXT) | st.tuples(
    st.sampled_from(["b", "img"]), st.builds(lambda words: [" ".join(words)], TEXT)
)
LINK = st.tuples(st.sampled_from(["a", "a", "area"]), st.lists(PLAIN, max_size=2))
INLINE = st.lists(PLAIN | LINK | st.tuples(st.just("i"), st.lists(LINK)), max_size=4)
HEADING = st.tuples(st.sampled_from(["h1", "h3"]), INLINE)
BODY = st.recursive(
    INLINE,
    lambda inner: st.lists(
        st.tuples(st.sampled_from(["div", "ul", "nav"]), inner) | HEADING | LINK, max_size=4
    ),
)


def html_of(nodes, numbers) -> str:
    parts = []
    for node in nodes:
        if isinstance(node, str):
            parts.append(f" {node} ")
            continue
        tag, children = node
        href = f'href="{next(numbers)}"' if tag in {"a", "area"} else ""
        parts.append(f"<{tag} {href}>")
        if tag not in {"area", "img"}:
            parts.append(f"{html_of(children, numbers)}</{tag}>")
    return "".join(parts)


class ObviousPage:
    """Reads the nodes by recursion; of each link it keeps all that encloses it."""

    def __init__(self, nodes) -> None:
        self.words: list[str] = []
        self.found: list[SimpleNamespace] = []
        self.headings: list[SimpleNamespace] = []
        whole = SimpleNamespace(tag="div", start=0, end=0)
        self.read(nodes, (whole,))
        whole.end = len(self.words)

    def read(self, nodes, around) -> None:
        for node in nodes:
            if isinstance(node, str):
                words = [word.lower() for word in node.split()]
                self.words += [w for w in words if w.isalpha() and 2 <= len(w) <= MAX_WORD_LENGTH]
                continue
            tag, children = node
            box = SimpleNamespace(tag=tag, start=len(self.words), end=0)
            if tag in {"a", "area"}:
                above = self.headings[-1] if self.headings else None
                self.found.append(SimpleNamespace(box=box, around=around, above=above))
            if tag[0] == "h":
                self.headings.append(box)
            if tag not in {"area", "img"}:
                self.read(children, (*around, box))
            box.end = len(self.words)

    def place(self, link) -> Place:
        """Return the place of a link by the definition."""
        box, heading, around = link.box, (), ()
        if link.above is not None:
            heading = self.words[link.above.start : link.above.end][:HEADING_WORDS]
        for block in reversed(link.around):
            beside = self.words[block.start : box.start], self.words[box.end : block.end]
            if block.tag in {"div", "ul", "nav"} and any(beside):
                around = (*beside[0][-WORDS:], *beside[1][:WORDS])
                break
        return Place(around, tuple(heading))


@given(BODY)
def test_equals_the_obvious_page(body) -> None:
    page = ObviousPage(body)
    expected = {str(number): page.place(link) for number, link in enumerate(page.found)}
    assert places(f"<body>{html_of(body, count())}</body>") == expected


def test_block_is_closest_with_words() -> None:
    html = (
        "<div>far away<div>near by<ul><li><a href=x>Gouda</a></li><li><a href=y>Brie</a> ripe</li>"
    )
    found = places(html)
    assert found["x"].around == ("brie", "ripe"), "its own item has no other words"
    assert found["y"].around == ("ripe",)


def test_heading_is_the_last_above() -> None:
    found = places(
        "<a href=w>W</a><h2>Our cheeses</h2><div><a href=x>X</a></div><h3>and <a href=y>wines</a>"
        "</h3><a href=z>Z</a>"
    )
    headings = {name: link.heading for name, link in found.items()}
    assert headings == {
        "w": (),
        "x": ("our", "cheeses"),
        "y": ("and", "wines"),
        "z": ("and", "wines"),
    }


def test_title_link_has_teaser_around() -> None:
    found = places("<article><h2><a href=x>Fresh brie</a></h2><p>How to eat it</p></article>other")
    assert found["x"].around == ("how", "to", "eat", "it")


def test_image_link_has_neighbours_words() -> None:
    found = places('<p>aged <a href=x><img alt="a wheel"></a> gouda</p>')
    assert found["x"].around == ("aged", "gouda")


def test_area_stands_where_its_map_is() -> None:
    found = places("<h2>Regions</h2><div>cheese of <map><area href=x alt=Alps></map>France</div>")
    assert found["x"] == Place(("cheese", "of", "france"), ("regions",))


def test_repeated_link_stands_where_text_is() -> None:
    html = "<div>no <a href=x></a></div><div>read <a href=x>this</a> more</div><a href=x>that</a>"
    assert places(html)["x"].around == ("read", "more")


def test_dropped_link_stands_nowhere() -> None:
    assert places("<p><noscript><a href=x>X</a></noscript>milk") == {"x": NOWHERE}


def test_places_are_read_on_demand() -> None:
    assert read_page("<a href=x>X</a>", URL).places == ()


FRAGMENTS = ["<div>", "</div>", "<h2>", "</h2>", "<a href=x>", "<a href=y>", "</a>", "<p>", "</p>"]
FRAGMENTS += ["<ul><li>", "</ul>", "<table><td>", "</table>", "<map><area href=z>", "<b>", "</b>"]


@given(st.lists(st.sampled_from([*FRAGMENTS, " brie ", " ham ", "<img alt=e>", "<!--", "<"])))
def test_broken_html_has_places(parts: list[str]) -> None:
    found = places("".join(parts))
    for where in found.values():
        assert len(where.around) <= 2 * WORDS
        assert set(where.around) | set(where.heading) <= {"brie", "ham"}


class Counted(place.Span):
    """Counts how often its words are compared."""

    reads = 0

    def __getattribute__(self, name):
        Counted.reads += name == "start"
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    "tags",
    [
        "<div><a href={}></a>",
        "<div><a href={}>brie</a>",
        "<b><a href={}></a>",
        "<div><h2><a href={}></a>",
        "<a href={}><div>",
        "<div>brie<a href={}>",
    ],
)
def test_deep_nesting_takes_linear_work(monkeypatch: pytest.MonkeyPatch, tags: str) -> None:
    """Each link is compared with a few blocks."""
    depth = 2_000
    monkeypatch.setattr(place, "Span", Counted)
    monkeypatch.setattr(Counted, "reads", 0)
    html = "".join(tags.format(number % 300) for number in range(depth))
    found = places(html)
    assert len(found) == 300
    assert Counted.reads <= 10 * depth
