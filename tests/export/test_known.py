import gzip
import json

import pytest

from tres_scrapy.export.known import Known

SOUP, PEA = "https://www.a.test/soup", "http://b.co.uk/pea"


@pytest.fixture
def read(tmp_path):
    """Read known URLs from the content of a file."""

    def read_(content, name="known.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        known = Known()
        known.read(path)
        return known

    return read_


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (f"# found before\n{SOUP}\n\n{PEA}\n", "known.txt"),
        (f"\ufeffHTTPS://WWW.a.test:443/soup#top\r\n{PEA}", "known.txt"),
        (gzip.compress(f"{SOUP}\n{PEA}\n".encode(), mtime=0), "known.txt.gz"),
        ("".join(json.dumps({"url": url, "text": "x"}) + "\n" for url in (SOUP, PEA)), "a.jsonl"),
        (json.dumps({"url": SOUP, "final_url": PEA}), "a.jsonl"),
        (f"url,final_url,title\n{SOUP},{PEA},\"Soup, or\"\n", "a.csv"),
    ],
)  # fmt: skip
def test_known_urls_imply_known_domains(read, content, name):
    known = read(content, name)
    assert known.urls == {SOUP, PEA}
    assert known.domains == {"a.test", "b.co.uk"}


@pytest.mark.parametrize(
    "content", ["a.test\nwww.b.co.uk\n", "domain,new,pages\na.test,true,3\nb.co.uk,true,1\n"]
)
def test_domains_are_known_without_urls(read, content):
    known = read(content)
    assert (known.urls, known.domains) == (set(), {"a.test", "b.co.uk"})


def test_empty_file_says_nothing(read):
    assert (read("").urls, read("").domains) == (set(), set())


@pytest.mark.parametrize(
    "line", ["ftp://a.test/", "two words", "{", '{"title": 1}', "[" * 99_999, '{"url": "x y"}']
)
def test_bad_line_is_named(read, line):
    with pytest.raises(ValueError, match=r"known\.txt line 2 must be (a URL|JSON)"):
        read(f"{SOUP}\n{line}\n")
