import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.downloader import rendering
from tres_scrapy.downloader.rendering import CERTAIN, RETRIAL, DomainMemory


def taught(*helped):
    domains = DomainMemory()
    for each in helped:
        domains.learn("a.test", helped=each)
    return domains


def test_unknown_domain_is_judged_by_looks():
    domains = DomainMemory()
    assert domains.wants("a.test", looks_empty=True)
    assert not domains.wants("a.test", looks_empty=False)


def test_rendered_domain_skips_plain_fetch():
    domains = taught(*[True] * CERTAIN)
    assert domains.wants("a.test", looks_empty=False)
    assert not domains.wants("b.test", looks_empty=False)
    assert domains.count_decided(to_need=True) == 1
    assert domains.count_decided(to_need=False) == 0


def test_plain_page_restores_the_looks():
    domains = taught(*[True] * CERTAIN, False)
    assert not domains.wants("a.test", looks_empty=False)
    assert domains.wants("a.test", looks_empty=True)


def test_plain_domain_is_retried_sometimes():
    domains = taught(*[False] * CERTAIN)
    wanted = [domains.wants("a.test", looks_empty=True) for _ in range(3 * RETRIAL)]
    assert [i + 1 for i, want in enumerate(wanted) if want] == [RETRIAL, 2 * RETRIAL, 3 * RETRIAL]
    assert not any(domains.wants("a.test", looks_empty=False) for _ in range(2 * RETRIAL))
    domains.learn("a.test", helped=True)
    assert domains.wants("a.test", looks_empty=True)


@given(st.lists(st.booleans(), max_size=30))
def test_memory_fades_with_pages(past):
    for helped in (True, False):
        domains = taught(*past, *[helped] * 2 * CERTAIN)
        assert domains.count_decided(to_need=helped) == 1


def test_memory_is_written_and_read(tmp_path):
    path = tmp_path / "render.json"
    taught(True, True, True).save(path)
    assert DomainMemory.load(path).wants("a.test", looks_empty=False)
    assert DomainMemory.load(tmp_path / "none.json").count_decided(to_need=True) == 0


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"a.test": 99}', '{"a.test": true}', '{"a.test": "1"}', "\x00", "[" * 100_000],
)
def test_what_is_no_memory_is_refused(tmp_path, text):
    path = tmp_path / "render.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="is not a file of render scores"):
        DomainMemory.load(path)


def test_link_to_elsewhere_is_refused(tmp_path):
    target = tmp_path / "secret.json"
    target.write_text(json.dumps({"a.test": 1}), encoding="utf-8")
    (tmp_path / "render.json").symlink_to(target)
    with pytest.raises(ValueError, match="not a plain file"):
        DomainMemory.load(tmp_path / "render.json")


def test_domains_used_long_ago_are_forgotten(monkeypatch):
    monkeypatch.setattr(rendering, "LARGEST", 2)
    domains = DomainMemory()
    for domain in ("a.test", "b.test", "a.test", "c.test"):
        domains.learn(domain, helped=True)
    domains.learn("a.test", helped=True)
    assert domains.wants("a.test", looks_empty=False)
    domains.learn("b.test", helped=True)
    assert not domains.wants("b.test", looks_empty=False)
