"""The pages of docs/: generated parts, names of code, and links."""

import importlib
import inspect
import re
import subprocess

import pytest
from conftest import PROJECT, docs_script, interpreter
from test_layers import GUESTS, PACKAGE, ROOMS

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)]+)\)")  # the target of a Markdown link or picture


@pytest.mark.slow
@pytest.mark.parametrize("name", ["settings", "formats", "run-file"])
def test_page_says_what_the_code_says(tmp_path, name):
    """Where this fails: `python docs/NAME.py`."""
    for path in (PROJECT / "docs").glob(f"{name}.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    script = tmp_path / f"{name}.py"
    subprocess.run([interpreter().path, script], cwd=PROJECT, check=True, capture_output=True)
    made = script.with_suffix(".md").read_text(encoding="utf-8")
    assert made == (PROJECT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_tutorial_can_be_followed():
    """Where this fails: `python docs/tutorial.py`, and read what has changed."""
    script = PROJECT / "docs" / "tutorial.py"
    ended = subprocess.run(
        [interpreter().path, script, "--check"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert re.match(r"1\d commands print what the page says", ended.stdout)


def test_tutorial_shows_fresh_figures():
    shown = ["...", "Wrote 7 pages", "http://a.test/1  a leek"]
    printed = ["Start", "Wrote 1,234 pages", "http://b.test/  a pea"]
    assert docs_script("tutorial").fitted(shown, printed) == ["...", *printed[1:]]


@pytest.mark.parametrize(
    ("shown", "complaint"),
    [
        (["Wrote 7 pages"], "'End' is printed, but not shown"),
        (["Wrote 7 files", "End"], "'Wrote 7 files' is not printed; there is 'Wrote 8 pages'"),
        (["...", "End", "Wrote 7 pages"], "'Wrote 7 pages' is not printed; there is the end"),
    ],
)
def test_tutorial_notices_other_lines(shown, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        docs_script("tutorial").fitted(shown, ["Wrote 8 pages", "End"])


def test_every_stat_is_documented(scrapy, tmp_path):
    process = scrapy(
        *("crawl", "tres", "-a", "topic=food", "-a", "pages=40", "-a", "web=synthetic"),
        *("-a", "warc=all", "-a", f"output={tmp_path / 'items.jsonl'}"),
    )
    assert process.returncode == 0, process.stderr
    text = (PROJECT / "docs" / "stats.md").read_text(encoding="utf-8")
    described = re.findall(r"`(tres/[^`]+)`", text)
    patterns = [re.sub("CODE|KIND|RULE", r"\\w+", stat) for stat in described]
    stats = [stat for stat in process.stats if stat.startswith("tres/")]
    assert len(stats) > 10
    assert [s for s in stats if not any(re.fullmatch(p, s) for p in patterns)] == []
    assert f"`{process.stats['finish_reason']}`" in text


def test_documented_code_exists():
    text = (PROJECT / "docs" / "paper.md").read_text(encoding="utf-8")
    places = re.findall(r"`([a-z_/0-9]+)\.py(?::([\w.]+))?`", text)
    assert len(places) > 30
    for module, path in places:
        if module.split("/")[0] in GUESTS and not (PACKAGE / module.split("/")[0]).exists():
            continue  # a guest that has been deleted
        found = importlib.import_module(f"tres_scrapy.{module.replace('/', '.')}")
        owner, _, name = path.rpartition(".")
        owner = getattr(found, owner) if owner else found
        # an attribute that __init__ sets is not a member of its class
        assert not name or hasattr(owner, name) or f"self.{name} = " in inspect.getsource(owner)


def test_links_lead_to_files():
    for page in PAGES:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            place, _, heading = target.partition("#")
            if not target.startswith("https:"):
                found = page.parent / place if place else page
                assert found.exists(), f"{page.name} links {target}, which is no file"
                anchors = headings(found) if heading else {heading}
                assert heading in anchors, f"{page.name} links {target}: no such heading"


def headings(page):
    """Return the anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_index_links_every_page():
    linked = set(LINK.findall((PROJECT / "docs" / "index.md").read_text(encoding="utf-8")))
    assert {page.name for page in PAGES[1:]} - linked == {"index.md"}


def test_map_names_every_room():
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for room in (*ROOMS, *GUESTS):
        assert f"`{room}/" in text or f"`{room}.py`" in text, f"the map lacks {room}"


def test_readme_stays_short():
    lines = (PROJECT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 100
    assert (PROJECT / "docs" / "live.png").stat().st_size <= 200_000
