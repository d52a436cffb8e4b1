"""Rights in a crawl: the items, what is kept out of them, and the file of the run."""

from urllib.parse import urlsplit

import pytest

from tres_scrapy.export.run_export import pages_of
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.record import Record

SITE = "http://soup.test"
DISH = "Simmer the leeks, onions and garlic in butter, add the broth, season the soup. "
FOODS = [
    ("leek", "cream", "potato", "parsley", "butter", "nutmeg", "broth"),
    ("bean", "bacon", "tomato", "oregano", "garlic", "cumin", "chili"),
    ("pea", "mint", "ham", "lemon", "shallot", "yogurt", "pepper"),
    ("corn", "cheddar", "milk", "paprika", "celery", "thyme", "chicken"),
    ("fish", "fennel", "saffron", "orange", "wine", "shrimp", "rouille"),
    ("onion", "beef", "gruyere", "bread", "sherry", "bay leaf", "stock"),
]
ROBOTS = "User-agent: *\nContent-Signal: ai-train=yes\nContent-Signal: /noai/ ai-train=no\n"


@pytest.fixture
def soups(pages):
    """Serve a page of links and pages that say something about their use."""
    links = "".join(
        f'<p><a href="{path}">{name} soup recipe</a></p>'
        for name, path in [("leek", "/plain"), ("bean", "/noai/a"), ("pea", "/header"),
                           ("corn", "/tdm/a"), ("fish", "/meta")]
    )  # fmt: skip
    pages.add(f"{SITE}/", f"<title>Soup recipes</title>{links}<p>{DISH * 12}</p>")
    for number, path in enumerate(("/plain", "/noai/a", "/header", "/tdm/a", "/meta", "/deep")):
        head = '<meta name="robots" content="noai">' if path == "/meta" else ""
        link = '<a href="/deep">onion soup recipe</a>' if path == "/meta" else ""
        dish = " ".join(f"Simmer the {food}, season the {food} soup." for food in FOODS[number])
        body = f"<title>Recipe for soup {number}</title>{head}<p>{link} {dish} {dish}</p>"
        said = {"Content_Usage": "train-ai=n"} if path == "/header" else {}
        pages.add(f"{SITE}{path}", body, **said)
    pages.add(f"{SITE}/robots.txt", ROBOTS)
    rules = '[{"location": "/tdm/", "tdm-reservation": 1}]'
    pages.add(f"{SITE}/.well-known/tdmrep.json", rules, Content_Type="application/json")
    return pages


def run(crawl, soups, tmp_path, *more):
    process, items = crawl(
        *("-a", f"seed={SITE}/", "-a", "private_addresses=1", *more), pages=soups
    )
    with Record(tmp_path / "pages.run") as record:
        exported, report = list(pages_of(record, 0.0)), render(record)
    found = {urlsplit(item["url"]).path: item["rights"] for item in items}
    return process, found, {urlsplit(page["url"]).path: page["rights"] for page in exported}, report


def said(rights):
    return {(each["signal"], each["value"], each["where"]) for each in rights}


def test_item_holds_what_was_said(crawl, soups, tmp_path):
    process, items, exported, _ = run(crawl, soups, tmp_path)
    assert not any("tdmrep" in url for url in soups.fetched())
    site = ("Content-Signal", "ai-train=yes", "robots.txt")
    assert said(items["/noai/a"]) == {("Content-Signal", "ai-train=no", "robots.txt /noai/")}
    assert said(items["/header"]) == {site, ("Content-Usage", "train-ai=n", "header Content-Usage")}
    assert said(items["/meta"]) == {site, ("noai", "", "meta robots")}
    assert said(items["/plain"]) == {site}
    assert all(each["when"] for rights in items.values() for each in rights)
    assert items == {path: exported[path] for path in items}
    assert process.stats["tres/pages"] == 7


def test_reserved_pages_stay_out(crawl, soups, tmp_path):
    process, items, exported, report = run(crawl, soups, tmp_path, "-a", "use=ai-train")
    assert {"/plain", "/deep"} <= items.keys()  # a link of a reserved page is followed
    assert not {"/noai/a", "/header", "/tdm/a", "/meta"} & (items.keys() | exported.keys())
    assert process.stats["tres/pages"] == 7
    assert process.stats["tres/reserved/ai-train"] == 4
    assert soups.fetched().count(f"{SITE}/.well-known/tdmrep.json") == 1
    assert "kept out of the output, as they are reserved: ai-train 4" in process.stderr
    assert "Kept out of the output, as reserved: ai-train 4." in report


def test_page_without_signals_says_so(crawl, soups, tmp_path):
    soups.add(f"{SITE}/robots.txt", "User-agent: *\n")
    _, items, _, _ = run(crawl, soups, tmp_path, "-a", "use=search", "-a", "pages=7")
    assert said(items["/plain"]) == {("none", "", "robots.txt, tdmrep.json, header, page")}
    assert items.keys() >= {"/header", "/meta"}  # reserved for other uses only
