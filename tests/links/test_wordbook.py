"""The texts of codes: told where pages are read, kept where the model learns."""

from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.links import code
from tres_scrapy.links.code import (
    BITS,
    MAX_CODES,
    MAX_NAME_LENGTH,
    RUNS,
    CueGroup,
    Names,
    Wordbook,
    coded,
    page_codes,
    url_codes,
    url_texts,
)
from tres_scrapy.page.text import read_page
from tres_scrapy.topic.keyword import KeywordSet

HTML = """<title>Soup of the day</title><body><main id="menu card"><h2>First courses</h2>
<p>Try our <a href="/onion">onion soup</a> with bread</p></main></body>"""


def page(html=HTML):
    return read_page(html, "http://inn.test/list", places=True, language=False)


NO_KEYWORD = KeywordSet(["wine"])


def test_every_word_is_told_once():
    words = Wordbook()
    cues = page_codes(page(), 0.5, NO_KEYWORD, words)
    told = dict(words.new)
    assert len(told) == len(words.new)
    assert set(cues.codes.tolist()) - told.keys() == {
        each for each in cues.codes.tolist() if each >> BITS == CueGroup.FACT
    }
    texts = {(CueGroup(each >> BITS), text) for each, text in told.items()}
    assert texts >= {
        (CueGroup.ANCHOR, "onion"),
        (CueGroup.AROUND, "bread"),
        (CueGroup.HEADING, "courses"),
        (CueGroup.PAGE, "soup"),
        (CueGroup.PAGE, "/list"),
    }
    again = page_codes(page(), 0.5, NO_KEYWORD, words)
    assert words.new == []
    assert again.codes.tolist() == cues.codes.tolist()


def test_wordbook_changes_no_code():
    alone, book = page_codes(page(), 0.5, NO_KEYWORD), Wordbook()
    page_codes(page(HTML.replace("onion", "leek")), 0.5, NO_KEYWORD, book)
    assert page_codes(page(), 0.5, NO_KEYWORD, book).codes.tolist() == alone.codes.tolist()


@given(st.lists(st.text(max_size=8), max_size=30))
def test_kept_codes_are_the_hashed_ones(texts):
    words = Wordbook()
    for group in MAX_CODES:
        assert words.coded(group, texts) == words.coded(group, texts) == coded(group, texts)


def test_full_group_tells_again(monkeypatch):
    monkeypatch.setattr(code, "MAX_TEXTS", 5)
    words = Wordbook()
    for number in range(40):
        words.coded(CueGroup.ANCHOR, [f"word{number}"])
    assert len(words._codes[CueGroup.ANCHOR]) <= 5
    words.new.clear()
    words.coded(CueGroup.ANCHOR, ["word0"])
    assert [text for _, text in words.new] == ["word0"]


def test_long_text_is_cut_at_its_start():
    words = Wordbook()
    words.coded(CueGroup.ANCHOR, [f"{'x' * 50}{'y' * 50}z"])
    ((_, longest),) = words.new
    assert len(longest) == MAX_NAME_LENGTH
    assert longest.startswith("…")
    assert longest.endswith("yz")


@given(st.from_regex(r"[a-z0-9./~]{0,130}", fullmatch=True))
def test_url_texts_are_those_of_its_codes(rest):
    url = f"http://a.test/{rest}"
    codes, texts = url_codes([url])[0].tolist(), url_texts(url)
    assert len(codes) == len(texts)
    assert texts[-2:] == [f"a.test{end}" for end in ("", f"/{rest}".rpartition("/")[0] + "/")]
    assert [each >> BITS for each in codes[-2:]] == [CueGroup.HOST] * 2
    known = dict(zip(texts[:-2], codes[:-2], strict=True))
    for text, found in zip(texts[:-2], codes[:-2], strict=True):
        assert len(text) in RUNS
        assert known[text] == found, "the same run has the same code everywhere"
    assert not {digit for text in texts[:-2] for digit in text} & set("123456789")


def test_same_run_has_one_code_on_all_urls():
    known = {}
    for url in ("http://a.test/cs302/", "http://b.test/x/cs999/y.html", "https://a.test/q?cs000/"):
        for text, found in zip(url_texts(url)[:-2], url_codes([url])[0].tolist(), strict=False):
            assert known.setdefault(text, found) == found
    assert len(set(known.values())) == len(known)


def test_first_text_of_a_code_stays():
    names = Names()
    names.learn([(1 << BITS, "first"), (1 << BITS, "second")])
    assert names.text(1 << BITS) == "first"
    assert names.text(2 << BITS) is None


def test_names_are_bounded_by_group(monkeypatch):
    monkeypatch.setattr(code, "MAX_NAMES", 3)
    names = Names()
    names.learn([(CueGroup.AROUND << BITS | number, f"flood{number}") for number in range(50)])
    names.learn([(CueGroup.ANCHOR << BITS, "soup")])
    assert len(names) == 4
    assert names.text(CueGroup.ANCHOR << BITS) == "soup"


def test_new_names_come_first():
    names = Names()
    names.learn([(number, str(number)) for number in range(5)])
    assert names.since(3) == [(4, "4"), (3, "3")]
    assert names.since(5) == []


def test_name_has_no_control_characters():
    names = Names()
    names.learn([(7, "div.\u202eevil\x1b[2J")])
    assert names.text(7) == "div.evil[2J"
