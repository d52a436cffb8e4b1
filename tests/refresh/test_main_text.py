import pytest

from tres_scrapy.refresh.main_text import (
    MINOR,
    OTHER,
    SAME,
    compare,
    copy_of,
    copy_of_bytes,
    distance,
    read,
)

ChangingWeb = pytest.importorskip("webs.changing").ChangingWeb

WORDS = " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(200))
URL = "http://a.test/"


def page(main, *, nav="home", advert="buy", stamp="1"):
    return (
        f"<html><head><title>T</title><meta name=csrf content={stamp}></head><body><nav>{nav}</nav>"
        f"<div class='menu'><ul><li><a href=/1>{nav}</a> <a href=/2>{nav} more</a></ul></div>"
        f"<main><p>{main}</p><form><input type=hidden value={stamp}></form></main>"
        f"<div class='Advert-box'><p>{advert} <a href=/x>now</a></p></div><aside>{advert}</aside>"
        f"<footer>{stamp} visitors</footer><!-- {stamp} --></body></html>"
    )


def test_navigation_and_adverts_are_ignored():
    old = read(page(WORDS), URL).copy
    new = read(page(WORDS, nav="other menu", advert="cheap shoes for all", stamp="2"), URL).copy
    assert compare(old, new) == SAME


def test_short_page_drops_its_menu():
    assert read(page("Few words here.", nav="one"), URL).text == "Few words here."


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"{WORDS} 1,234 visitors", MINOR),
        (WORDS.replace("wordaa", "other", 1), MINOR),
        (" ".join(reversed(WORDS.split())), OTHER),
        (WORDS[: len(WORDS) // 2], OTHER),
    ],
)
def test_how_much_has_changed(text, verdict):
    assert compare(copy_of("T", WORDS), copy_of("T", text)) == verdict


def test_minor_differences_are_bounded_by_lanes():
    old, new = copy_of("", WORDS), copy_of("", WORDS.replace("wordaa", "other", 1))
    lanes = distance(old, new)
    assert lanes > 0
    assert compare(old, new, lanes) == MINOR
    assert compare(old, new, lanes - 1) == OTHER


def test_foreign_copy_may_differ_more():
    old, new = copy_of("", WORDS), copy_of("", " ".join(WORDS.split()[30:]))
    loose = copy_of("", WORDS, loose=True)
    assert 12 < distance(old, new) <= 24
    assert (compare(old, new), compare(loose, new)) == (OTHER, MINOR)


def test_binary_body_is_compared_whole():
    one, other = copy_of_bytes(b"%PDF 1"), copy_of_bytes(b"%PDF 2")
    assert compare(one, copy_of_bytes(b"%PDF 1")) == SAME
    assert compare(one, other) == OTHER
    assert compare(one, copy_of("", WORDS)) == OTHER


def test_soft_404_is_told():
    assert read("<title>Page not found</title><p>Sorry.</p>", URL).missing
    assert not read(page(WORDS), URL).missing


def test_changing_web_changes_on_time():
    web = ChangingWeb(60, seed=3)
    for number in range(60):
        first, again, later = (
            read(web.html(number, version, noise), URL).copy
            for version, noise in ((4, 12345), (4, 67890), (5, 424242))
        )
        assert compare(first, again) in {SAME, MINOR}
        assert compare(first, later) == OTHER
