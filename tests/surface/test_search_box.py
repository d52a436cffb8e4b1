import json

import pytest

from tres_scrapy.surface.search_box import (
    GET,
    POST,
    Interface,
    find_description,
    find_interface,
    read_description,
)

HOME = "http://a.test/shop/"
PLAIN = '<form action="/find"><input type="search" name="q"></form>'


def script(data):
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


def action(template, parameter="search_term_string"):
    return {
        "@type": "SearchAction",
        "target": template,
        "query-input": f"required name={parameter}",
    }


@pytest.mark.parametrize(
    "data",
    [
        {"@type": "WebSite", "potentialAction": action("http://a.test/s?k={search_term_string}")},
        {"@graph": [{}, {"potentialAction": [action("/s?k={words}", "words")]}]},
        {"a": action({"@type": "EntryPoint", "urlTemplate": "/s?k={search_term_string}"})},
    ],
)  # fmt: skip
def test_json_ld_search_action(data):
    interface = find_interface(script(data), HOME)
    assert interface == Interface(GET, "http://a.test/s?k={query}", "", "json-ld")
    assert interface.url("brie & port") == "http://a.test/s?k=brie+%26+port"


@pytest.mark.parametrize(
    "html",
    [
        script(action("http://a.test/s?k={search_term_string}&in={category}")),
        script(action("http://a.test/s")),
        script(action("javascript:find({search_term_string})")),
        "<script type='application/ld+json'>{not json</script>",
        script([[[]], None, 3, {"@type": "SearchAction"}]),
    ],
)
def test_unusable_search_action_is_ignored(html):
    assert find_interface(html, HOME) is None


def test_opensearch_description_is_named_and_read():
    html = '<link rel="search" type="application/opensearchdescription+xml" href="/o.xml">'
    assert find_description(html, HOME) == "http://a.test/o.xml"
    xml = """<?xml version="1.0"?><OpenSearchDescription>
        <Url type="application/rss+xml" template="http://a.test/rss?q={searchTerms}"/>
        <Url type="text/html" template="http://a.test/s?q={searchTerms}&amp;p={startPage?}"/>
        </OpenSearchDescription>"""
    interface = read_description(xml, "http://a.test/o.xml")
    assert interface == Interface(GET, "http://a.test/s?q={query}&p=", "", "opensearch")
    assert read_description("<html>no description</html>", HOME) is None
    posted = xml.replace('type="text/html"', 'type="text/html" method="post"')
    assert read_description(posted, HOME) is None


def test_form_sends_preset_fields():
    html = """<form action="find?old=1" role="search"><input name="query">
        <input type="hidden" name="lang" value="en"><input type="checkbox" name="a" value="1">
        <input type="checkbox" name="b" value="2" checked>
        <select name="in"><option value="x">X</option><option value="y" selected>Y</option></select>
        <input type="submit" name="go" value="Go"></form>"""
    interface = find_interface(html, HOME)
    assert (
        interface.url("old cheese") == "http://a.test/shop/find?lang=en&b=2&in=y&query=old+cheese"
    )
    assert interface.action == "a.test/shop/find"


@pytest.mark.parametrize(
    "form",
    [
        '<form action="/login"><input name="user"><input type="password" name="p"></form>',
        '<form action="/letters"><input type="email" name="email"></form>',
        '<form action="/letters"><input name="q"><input type="email" name="email"></form>',
        '<form action="/up"><input name="q"><input type="file" name="f"></form>',
        '<form action="/book"><input name="from"><input name="to"></form>',
        '<form action="/name"><input name="nickname"></form>',
        '<form action="mailto:a@a.test"><input type="search" name="q"></form>',
    ],
)
def test_other_forms_are_ignored(form):
    assert find_interface(form, HOME) is None
    assert find_interface(form + PLAIN, HOME).action == "a.test/find"


def test_get_box_beats_post_box():
    posted = PLAIN.replace("<form", '<form method="post" role="search"').replace("/find", "/post")
    assert find_interface(posted, HOME) == Interface(
        POST, "http://a.test/post", "q={query}", "form"
    )
    assert find_interface(posted, HOME).payload("a b") == "q=a+b"
    assert find_interface(posted + PLAIN, HOME).method == GET


def test_the_likeliest_form_is_taken():
    other = '<form action="/filter"><input name="text"></form>'
    assert find_interface(other + PLAIN, HOME).action == "a.test/find"
